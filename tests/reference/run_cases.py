#!/usr/bin/env python3
# ruff: noqa
# fmt: off
"""Differential runner for cases.yaml.

Usage: run_cases.py --socket /run/x.sock --profile containerd-1.6.20 --api v1 --pb DIR [--only GLOB,..] [--skip-tags a,b]
DIR holds cri_v1_pb2.py and cri_v1alpha2_pb2.py (protoc output of the two api.proto files, gogo options stripped).
Needs images docker.io/library/busybox:1.0 (+ :1.0-alias) etc. on the server; see the header of cases.yaml.
"""
import argparse, base64, fnmatch, json, os, re, sys, tempfile, threading, time
import grpc, yaml
from google.protobuf import json_format, message_factory

ap = argparse.ArgumentParser()
ap.add_argument('--socket', required=True); ap.add_argument('--profile', default='containerd-1.6.20'); ap.add_argument('--api', default='v1')
ap.add_argument('--pb', required=True); ap.add_argument('--only', default='*'); ap.add_argument('--skip-tags', default='')
ap.add_argument('--cases', default=os.path.join(os.path.dirname(os.path.abspath(__file__)), 'cases.yaml'))
ap.add_argument('--log-dir', default=os.path.join(tempfile.gettempdir(), 'refcases-logs')); ap.add_argument('--skip-crash', action='store_true'); ap.add_argument('-v', action='store_true')
A = ap.parse_args()
pause = time.sleep  # the cases measure real servers, whose time nobody moves
sys.path.insert(0, A.pb)
PB = __import__({'v1': 'cri_v1_pb2', 'v1alpha2': 'cri_v1alpha2_pb2'}[A.api])
BUSY = 'docker.io/library/busybox:1.0'
TS_MIN = 16 * 10 ** 17

class Res:
    def __init__(s, code, msg='', resp=None, n=None): s.code, s.msg, s.resp, s.n = code, msg, resp, n

class Client:
    def __init__(self):
        self.ch = grpc.insecure_channel('unix://' + A.socket, options=[('grpc.max_receive_message_length', 64 << 20)])
        self.m = {m.name: (f'/{s.full_name}/{m.name}', m) for s in PB.DESCRIPTOR.services_by_name.values() for m in s.methods}
    def call(self, name, req=None, timeout=60):
        path, m = self.m[name]
        q = json_format.ParseDict(req or {}, message_factory.GetMessageClass(m.input_type)())
        des = message_factory.GetMessageClass(m.output_type).FromString
        try:
            if m.server_streaming:
                out, n = {}, 0
                for r in self.ch.unary_stream(path, request_serializer=lambda x: x.SerializeToString(), response_deserializer=des)(q, timeout=timeout or 3):
                    n += 1
                    for k, v in json_format.MessageToDict(r, preserving_proto_field_name=True).items():
                        out.setdefault(k, []).extend(v if isinstance(v, list) else [v])
                return Res('OK', resp=out, n=n)
            r = self.ch.unary_unary(path, request_serializer=lambda x: x.SerializeToString(), response_deserializer=des)(q, timeout=timeout)
            return Res('OK', resp=json_format.MessageToDict(r, preserving_proto_field_name=True))
        except grpc.RpcError as e:
            return Res(e.code().name, e.details() or '')

class Setup(Exception): pass

class Run:
    def __init__(self):
        self.c = Client()
        img = self.c.call('ImageStatus', {'image': {'image': BUSY}}).resp['image']['id']
        self.base = {'IMG': img, 'IMGHEX': img.split(':')[-1]}
    def sub(self, o):
        if isinstance(o, str): return re.sub(r'\$\{(\w+)(?::(\d+))?\}', lambda m: self.v[m[1]][:int(m[2]) if m[2] else None], o)
        if isinstance(o, list): return [self.sub(x) for x in o]
        if isinstance(o, dict):
            if len(o) == 1:
                (k, a), = o.items()
                if k == '$pod': return self.pod(**a)
                if k == '$ctr': return self.sub(self.ctr(**a))
                if k == '$img': return self.img(a)
                if k == '$podcfg': return self.cfg[a]
            return {k: self.sub(x) for k, x in o.items()}
        return o
    def img(self, ref, spec=None): return {'image': ref, **({'user_specified_image': spec or ref} if A.api == 'v1' else {})}
    def pod(self, name, uid=None, attempt=0, labels=None, annotations=None, host_network=False, host_pid=False, namespace='default'):
        return {'metadata': {'name': name, 'namespace': namespace, 'uid': uid or 'uid-' + name, 'attempt': attempt}, 'log_directory': f'{A.log_dir}/{name}',
                'labels': labels or {}, 'annotations': annotations or {}, 'linux': {'cgroup_parent': '/refpods', 'security_context': {
                    'namespace_options': {'network': 'NODE' if host_network else 'POD', 'pid': 'NODE' if host_pid else 'CONTAINER'}}}}
    def ctr(self, name, command=('sleep', '3600'), image=BUSY, attempt=0, labels=None, annotations=None, log_path='', memory=0, host_pid=False, linux=None, user_specified_image=None, **k):
        d = {'metadata': {'name': name, 'attempt': attempt}, 'image': self.img(image, user_specified_image), 'labels': labels or {}, 'annotations': annotations or {},
             'linux': {'security_context': {'namespace_options': {'pid': 'NODE' if host_pid else 'CONTAINER'}}}}
        if command is not None: d['command'] = list(command)
        if log_path is not None: d['log_path'] = log_path or f'{name}_{attempt}.log'
        if memory: d['linux']['resources'] = {'memory_limit_in_bytes': memory}
        for a, b in (linux or {}).items():
            if isinstance(b, dict): d['linux'].setdefault(a, {}).update(b)
            else: d['linux'][a] = b
        d.update(k); return d
    def need(self, r, op):
        if r.code != 'OK': raise Setup(op, r)
        return r.resp
    def step(self, s):
        (op, a), = s.items(); c = self.c.call
        if op == 'run_pod':
            a = dict(a); n = a.pop('as'); cfg = self.pod(**a); self.v[n] = self.need(c('RunPodSandbox', {'config': cfg}), op)['pod_sandbox_id']; self.cfg[n] = cfg
        elif op == 'create':
            a = dict(a); n = a.pop('as'); p = a.pop('pod')
            self.v[n] = self.need(c('CreateContainer', {'pod_sandbox_id': self.v[p], 'config': self.sub(self.ctr(**a)), 'sandbox_config': self.cfg[p]}), op)['container_id']
        elif op == 'start': self.need(c('StartContainer', {'container_id': self.v[a]}), op)
        elif op == 'stop': self.need(c('StopContainer', {'container_id': self.v[a['id']], 'timeout': a['timeout']}), op)
        elif op == 'remove': self.need(c('RemoveContainer', {'container_id': self.v[a]}, None), op)
        elif op == 'stop_pod': self.need(c('StopPodSandbox', {'pod_sandbox_id': self.v[a]}, None), op)
        elif op == 'remove_pod': self.need(c('RemovePodSandbox', {'pod_sandbox_id': self.v[a]}, None), op)
        elif op == 'sleep_s': pause(a)
        elif op == 'wait_state':
            for _ in range(100):
                r = c('ContainerStatus', {'container_id': self.v[a['id']]})
                if r.resp and r.resp['status'].get('state', 'CONTAINER_CREATED') == a['state']: return
                pause(.1)
            raise Setup(op, r)
        elif op == 'rpc':
            r = c(a['method'], self.sub(a['request']))
            if a.get('as'): self.v[a['as']] = r.resp[a['field']]
        else: raise ValueError(op)
    def cleanup(self):
        for x in (self.c.call('ListContainers', {'filter': {'state': {'state': 'CONTAINER_RUNNING'}}}).resp or {}).get('containers', []): self.c.call('StopContainer', {'container_id': x['id']}, 20)
        for p in (self.c.call('ListPodSandbox').resp or {}).get('items', []):
            self.c.call('StopPodSandbox', {'pod_sandbox_id': p['id']}, None); self.c.call('RemovePodSandbox', {'pod_sandbox_id': p['id']}, None)
    def get(self, o, path):
        suf = None
        m = re.fullmatch(r'(.*)#(len|keys)', path)
        if m: path, suf = m[1], m[2]
        def go(o, ps):
            if not ps: return o
            p = ps[0]
            if p == '[*]': return [go(x, ps[1:]) for x in (o or [])]
            if p == '*': return sorted(o) if o else []
            if p[0] == '[': i = int(p[1:-1]); return go(o[i], ps[1:]) if o and len(o) > i else None
            return go(o.get(p), ps[1:]) if isinstance(o, dict) else None
        v = go(o, re.findall(r'[^.\[\]]+|\[\*\]|\[\d+\]', path))
        if suf == 'len': return 0 if v is None else len(base64.b64decode(v)) if isinstance(v, str) else len(v)
        if suf == 'keys': return sorted(json.loads(v)) if v else None
        return v
    def rx(self, r): return re.sub(r'\$\{(\w+)(?::(\d+))?\}', lambda m: re.escape(self.v[m[1]][:int(m[2]) if m[2] else None]) if m[1] in self.v else '[0-9a-f]+', r)
    def match(self, e, v):
        """None when v matches the expectation e, else a reason."""
        if isinstance(e, str) and e.startswith('<') and e.endswith('>'):
            k = e[1:-1]
            if k == 'absent': return None if v in (None, '', 0, False) or v == {} and False else f'want absent, got {v!r}'
            if k == 'all-images': return None
            if k == 'ns?' and v is None: return None
            if v is None: return f'want {e}, got nothing'
            if k.startswith('re:'): return None if re.search(self.rx(k[3:]), v) else f'want {e}, got {v!r}'
            ok = {'ns': lambda: int(v) > TS_MIN, 'ns?': lambda: int(v) > TS_MIN, 'int': lambda: int(v) >= 0, 'str': lambda: isinstance(v, str) and v != '', 'hex64': lambda: re.fullmatch('[0-9a-f]{64}', v),
                  'sha256': lambda: re.fullmatch('sha256:[0-9a-f]{64}', v), 'ipv4': lambda: re.fullmatch(r'\d+\.\d+\.\d+\.\d+', v), 'uint64value': lambda: set(v) <= {'value'}, 'go-zero-time': lambda: v == '-6795364578871345152'}[k]()
            return None if ok else f'want {e}, got {v!r}'
        if isinstance(e, dict) and set(e) == {'set'}:
            if not isinstance(v, list) or len(v) != len(e['set']): return f'want set {e["set"]}, got {v}'
            left = list(v)
            for x in e['set']:
                for i, y in enumerate(left):
                    if self.match(x, y) is None: left.pop(i); break
                else: return f'want set {e["set"]}, got {v}'
            return None
        if isinstance(e, dict):
            if not isinstance(v, dict): return f'want {e}, got {v!r}'
            for k in set(e) | set(v):
                if k not in e: return f'unexpected key {k}={v[k]!r}'
                r = self.match(e[k], v.get(k))
                if r: return f'{k}: {r}'
            return None
        if isinstance(e, list):
            if not isinstance(v, list) or len(e) != len(v): return f'want {e}, got {v!r}'
            for x, y in zip(e, v):
                r = self.match(x, y)
                if r: return r
            return None
        if isinstance(e, str): e = self.sub(e)
        return None if e == v else f'want {e!r}, got {v!r}'
    def events(self, case, e):
        evs = []; done = threading.Event()
        def sub():
            path, m = self.c.m['GetContainerEvents']
            try:
                for r in Client().ch.unary_stream(path, request_serializer=lambda x: x.SerializeToString(), response_deserializer=message_factory.GetMessageClass(m.output_type).FromString)(message_factory.GetMessageClass(m.input_type)(), timeout=60):
                    evs.append(json_format.MessageToDict(r, preserving_proto_field_name=True))
            except grpc.RpcError as x: self.evcode = x.code().name; self.evmsg = x.details()
            else: self.evcode = 'OK'; self.evmsg = ''
            done.set()
        self.evcode = None; threading.Thread(target=sub, daemon=True).start(); pause(1.5); evs.clear()
        if 'code' in e:
            done.wait(5)
            if self.evcode != e['code']: return f'code {self.evcode}'
            if e.get('message_regex') and not re.search(e['message_regex'], self.evmsg): return f'message {self.evmsg}'
            return None if not evs else f'events {evs}'
        for s in case['setup']: self.step(s)
        want = e['events']
        for w, g in zip(want, evs):
            got = {'type': g.get('container_event_type', 'CONTAINER_CREATED_EVENT'), 'id': g['container_id'], 'pod_state': g['pod_sandbox_status'].get('state', 'SANDBOX_READY') if 'pod_sandbox_status' in g else None,
                   'containers': {c['id']: c.get('state', 'CONTAINER_CREATED') for c in g.get('containers_statuses', [])}}
            w2 = {'type': w['type'], 'id': self.sub(w['id']), 'pod_state': w['pod_state'], 'containers': {self.sub(k): x for k, x in w['containers'].items()}}
            if w2 != got: return f'want {w2}\n      got {got}'
        t = e['events_tail']; rest = evs[len(want):]
        if len(evs) < len(want): return f'{len(evs)} events, want {len(want)}'
        if sorted(g['container_id'] for g in rest) != sorted(self.sub(t['ids'])) or any(g.get('container_event_type') != t['type'] for g in rest): return f'tail {[(g.get("container_event_type"), g["container_id"][:6]) for g in rest]}'
        if rest and rest[-1]['container_id'] != self.sub(t['last_id']): return 'last event is not the sandbox'
        if rest: return self.match(t['last_pod_state'], rest[-1]['pod_sandbox_status'].get('state', 'SANDBOX_READY') if 'pod_sandbox_status' in rest[-1] else None)
    def one(self, case, e):
        self.v = dict(self.base); self.cfg = {}
        try:
            if case['call'].get('subscribe'): return self.events(case, e)
            try:
                for s in case.get('setup', []): self.step(s)
            except Setup as x:
                op, r = x.args; f = e.get('setup_fails')
                if not f: return f'setup step {op}: {r.code} {r.msg}'
                if (op, r.code) != (f['step'], f['code']): return f'setup failed otherwise: {op} {r.code} {r.msg}'
                return None if re.search(self.rx(f['message_regex']), r.msg) else f'setup message {r.msg!r} !~ {f["message_regex"]}'
            if 'setup_fails' in e: return 'setup was expected to fail'
            m = case['call']['method']; lim = case['call'].get('client_timeout_s')
            r = self.c.call(m, self.sub(case['call']['request']), lim or (None if m in ('StopPodSandbox', 'RemovePodSandbox', 'RemoveContainer') else 3 if self.c.m[m][1].server_streaming else 60))
            if r.code != e['code']: return f'code {r.code} ({r.msg}), want {e["code"]}'
            if 'message_regex' in e and not re.search(self.rx(e['message_regex']), r.msg): return f'message {r.msg!r} !~ {e["message_regex"]}'
            if 'stream_messages' in e and r.n != e['stream_messages']: return f'{r.n} stream messages, want {e["stream_messages"]}'
            for p, x in e.get('fields', {}).items():
                why = self.match(x, self.get(r.resp, p))
                if why: return f'{p}: {why}'
        finally: self.cleanup()

R = Run(); R.cleanup()
ok = bad = skip = 0; t0 = time.time()
for case in yaml.safe_load(open(A.cases)):
    if A.api not in (case['api'] if isinstance(case['api'], list) else [case['api']]): continue
    if not any(fnmatch.fnmatch(case['name'], g) for g in A.only.split(',')): continue
    e = case.get('profiles', {}).get(A.profile)
    if e is None and (A.profile == 'containerd-1.6.20' or A.profile in case.get('same_on', [])): e = case['expect']
    if e is None or set(case.get('tags', [])) & set(A.skip_tags.split(',')) or e.get('server_crash') and A.skip_crash: skip += 1; continue
    if e.get('server_crash'): e = {'code': 'UNAVAILABLE'}
    try: why = R.one(case, e)
    except Exception as x: why = f'runner: {type(x).__name__} {x}'
    if why: bad += 1; print('FAIL', case['name'], '-', why[:700], flush=True)
    else:
        ok += 1
        if A.v: print('ok  ', case['name'], flush=True)
print(f'{A.profile} {A.api}: {ok} ok, {bad} failed, {skip} skipped, {time.time() - t0:.0f} s')
sys.exit(1 if bad else 0)
