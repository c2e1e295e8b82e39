"""Replay cases.yaml on a socket and report, case by case, whether the runtime answers as the measured one did.

    run_cases.py --socket PATH --profile containerd-1.6.20 --api v1 --pb DIR

DIR holds cri_v1_pb2.py and cri_v1alpha2_pb2.py, made by grpcio-tools from the two api.proto files. The runtime needs
the images and handlers that the head of cases.yaml names; nothing of fakecri is imported. A line of JSON is written
for each case: name, and why it failed or was skipped.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import json
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import yaml
from google.protobuf import json_format, message_factory
from matching import at, filled, mismatch, pattern

HERE = os.path.dirname(os.path.abspath(__file__))
BUSYBOX = "docker.io/library/busybox:1.0"
#: CRI-O takes a grace period from the client's deadline; these get none, as when they were measured.
WITHOUT_DEADLINE = ("StopPodSandbox", "RemovePodSandbox", "RemoveContainer")
DEADLINE_S = 60.0
STREAM_DEADLINE_S = 3.0
PATIENCE_S = 10.0


class Result:
    """What a call ended with."""

    def __init__(self, code: str, text: str = "", reply: dict[str, Any] | None = None, messages: int = 0) -> None:
        self.code = code
        self.text = text
        self.reply = reply or {}
        self.messages = messages


class SetupFailed(Exception):
    """A step before the case's own call did not go as it should."""

    def __init__(self, step: str, result: Result) -> None:
        super().__init__(step, result.code, result.text)
        self.step = step
        self.result = result


def as_json(message: Any) -> dict[str, Any]:
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


class Client:
    """Calls by method name, requests and replies as protobuf JSON."""

    def __init__(self, socket: str, module: Any) -> None:
        self.channel = grpc.insecure_channel(
            f"unix://{socket}", options=[("grpc.max_receive_message_length", 64 << 20)]
        )
        services = module.DESCRIPTOR.services_by_name.values()
        self.methods = {
            method.name: (f"/{service.full_name}/{method.name}", method)
            for service in services
            for method in service.methods
        }

    def stream(self, method: str, request: dict[str, Any], deadline_s: float | None) -> Iterator[dict[str, Any]]:
        path, described = self.methods[method]
        message = json_format.ParseDict(request, message_factory.GetMessageClass(described.input_type)())
        call = self.channel.unary_stream(
            path,
            request_serializer=lambda value: value.SerializeToString(),
            response_deserializer=message_factory.GetMessageClass(described.output_type).FromString,
        )
        for reply in call(message, timeout=deadline_s):
            yield as_json(reply)

    def call(self, method: str, request: dict[str, Any] | None = None, deadline_s: float | None = DEADLINE_S) -> Result:
        path, described = self.methods[method]
        try:
            if described.server_streaming:
                gathered: dict[str, list[Any]] = {}
                count = 0
                for reply in self.stream(method, request or {}, deadline_s):
                    count += 1
                    for key, value in reply.items():
                        gathered.setdefault(key, []).extend(value if isinstance(value, list) else [value])
                return Result("OK", reply=gathered, messages=count)
            message = json_format.ParseDict(request or {}, message_factory.GetMessageClass(described.input_type)())
            call = self.channel.unary_unary(
                path,
                request_serializer=lambda value: value.SerializeToString(),
                response_deserializer=message_factory.GetMessageClass(described.output_type).FromString,
            )
            return Result("OK", reply=as_json(call(message, timeout=deadline_s)))
        except grpc.RpcError as error:
            return Result(error.code().name, error.details() or "")

    def deadline_s(self, method: str) -> float | None:
        if self.methods[method][1].server_streaming:
            return STREAM_DEADLINE_S
        return None if method in WITHOUT_DEADLINE else DEADLINE_S


class Events:
    """A subscription in a thread of its own, and what it has brought."""

    def __init__(self, client: Client) -> None:
        self.received: list[dict[str, Any]] = []
        self.code: str | None = None
        self.text = ""
        self._client = client
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            for event in self._client.stream("GetContainerEvents", {}, DEADLINE_S):
                self.received.append(event)
            self.code = "OK"
        except grpc.RpcError as error:
            self.text = error.details() or ""
            self.code = error.code().name

    def wait(self, condition: Callable[[], bool]) -> bool:
        """Whether a condition came true within the patience."""
        end = time.monotonic() + PATIENCE_S
        while not condition() and time.monotonic() < end:
            time.sleep(0.01)
        return condition()


class Templates:
    """The case file's short forms of configs, spelt out."""

    def __init__(self, api: str, log_directory: str) -> None:
        self.api = api
        self.log_directory = log_directory
        self.names: dict[str, str] = {}
        self.pod_configs: dict[str, Any] = {}

    def expand(self, value: Any) -> Any:
        if isinstance(value, str):
            return filled(value, self.names)
        if isinstance(value, list):
            return [self.expand(one) for one in value]
        if isinstance(value, dict):
            if len(value) == 1:
                ((key, content),) = value.items()
                if key == "$podcfg":
                    return self.pod_configs[content]
                short = {"$pod": lambda c: self.pod(**c), "$ctr": lambda c: self.expand(self.container(**c))}
                if key in short:
                    return short[key](content)
                if key == "$img":
                    return self.image(content)
            return {key: self.expand(one) for key, one in value.items()}
        return value

    def image(self, reference: str, specified: str | None = None) -> dict[str, str]:
        newer = {"user_specified_image": specified or reference} if self.api == "v1" else {}
        return {"image": reference, **newer}

    def pod(self, name: str, **given: Any) -> dict[str, Any]:
        options = {
            "network": "NODE" if given.get("host_network") else "POD",
            "pid": "NODE" if given.get("host_pid") else "CONTAINER",
        }
        return {
            "metadata": {
                "name": name,
                "namespace": given.get("namespace", "default"),
                "uid": given.get("uid") or f"uid-{name}",
                "attempt": given.get("attempt", 0),
            },
            "log_directory": f"{self.log_directory}/{name}",
            "labels": given.get("labels", {}),
            "annotations": given.get("annotations", {}),
            "linux": {"cgroup_parent": "/refpods", "security_context": {"namespace_options": options}},
        }

    def container(
        self,
        name: str,
        command: Any = ("sleep", "3600"),
        image: str = BUSYBOX,
        attempt: int = 0,
        log_path: str | None = "",
        memory: int = 0,
        host_pid: bool = False,
        linux: dict[str, Any] | None = None,
        user_specified_image: str | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        pid = "NODE" if host_pid else "CONTAINER"
        made: dict[str, Any] = {
            "metadata": {"name": name, "attempt": attempt},
            "image": self.image(image, user_specified_image),
            "linux": {"security_context": {"namespace_options": {"pid": pid}}},
        }
        if command is not None:
            made["command"] = list(command)
        if log_path is not None:
            made["log_path"] = log_path or f"{name}_{attempt}.log"
        if memory:
            made["linux"]["resources"] = {"memory_limit_in_bytes": memory}
        for key, value in (linux or {}).items():
            if isinstance(value, dict):
                made["linux"].setdefault(key, {}).update(value)
            else:
                made["linux"][key] = value
        return made | more


class Replay:
    """One case after the other against one server, which is left empty after each."""

    def __init__(self, client: Client, api: str, log_directory: str) -> None:
        self.client = client
        self._api = api
        self._log_directory = log_directory
        image = client.call("ImageStatus", {"image": {"image": BUSYBOX}}).reply["image"]["id"]
        self._images = {"IMG": image, "IMGHEX": image.split(":")[-1]}
        self._begin()

    def _begin(self) -> None:
        self.templates = Templates(self._api, self._log_directory)
        self.names = self.templates.names
        self.names.update(self._images)

    def run(self, case: dict[str, Any], expect: dict[str, Any]) -> str | None:
        """None when the runtime did as measured, else why not."""
        self._begin()
        try:
            if case["call"].get("subscribe"):
                return self._events(case, expect)
            try:
                for step in case.get("setup", []):
                    self._step(step)
            except SetupFailed as failure:
                return self._judge_setup(failure, expect)
            if "setup_fails" in expect:
                return "setup was expected to fail"
            return self._judge(case["call"], expect)
        finally:
            self.clean_up()

    def clean_up(self) -> None:
        """Remove every sandbox and container."""
        call = self.client.call
        running = {"filter": {"state": {"state": "CONTAINER_RUNNING"}}}
        for container in call("ListContainers", running).reply.get("containers", []):
            call("StopContainer", {"container_id": container["id"]}, 20)
        for pod in call("ListPodSandbox").reply.get("items", []):
            call("StopPodSandbox", {"pod_sandbox_id": pod["id"]}, None)
            call("RemovePodSandbox", {"pod_sandbox_id": pod["id"]}, None)

    # -- steps -----------------------------------------------------------------------------------------------------
    def _step(self, step: dict[str, Any]) -> None:
        ((name, given),) = step.items()
        getattr(self, f"_step_{name}")(given)

    def _must(self, step: str, method: str, request: dict[str, Any]) -> dict[str, Any]:
        result = self.client.call(method, request, self.client.deadline_s(method))
        if result.code != "OK":
            raise SetupFailed(step, result)
        return result.reply

    def _step_run_pod(self, given: dict[str, Any]) -> None:
        named = given["as"]
        config = self.templates.pod(**{key: value for key, value in given.items() if key != "as"})
        self.names[named] = self._must("run_pod", "RunPodSandbox", {"config": config})["pod_sandbox_id"]
        self.templates.pod_configs[named] = config

    def _step_create(self, given: dict[str, Any]) -> None:
        pod = given["pod"]
        short = {key: value for key, value in given.items() if key not in ("as", "pod")}
        request = {
            "pod_sandbox_id": self.names[pod],
            "config": self.templates.expand(self.templates.container(**short)),
            "sandbox_config": self.templates.pod_configs[pod],
        }
        self.names[given["as"]] = self._must("create", "CreateContainer", request)["container_id"]

    def _step_start(self, name: str) -> None:
        self._must("start", "StartContainer", {"container_id": self.names[name]})

    def _step_stop(self, given: dict[str, Any]) -> None:
        self._must("stop", "StopContainer", {"container_id": self.names[given["id"]], "timeout": given["timeout"]})

    def _step_remove(self, name: str) -> None:
        self._must("remove", "RemoveContainer", {"container_id": self.names[name]})

    def _step_stop_pod(self, name: str) -> None:
        self._must("stop_pod", "StopPodSandbox", {"pod_sandbox_id": self.names[name]})

    def _step_remove_pod(self, name: str) -> None:
        self._must("remove_pod", "RemovePodSandbox", {"pod_sandbox_id": self.names[name]})

    def _step_sleep_s(self, seconds: float) -> None:
        time.sleep(seconds)

    def _step_wait_state(self, given: dict[str, Any]) -> None:
        end = time.monotonic() + PATIENCE_S
        while True:
            result = self.client.call("ContainerStatus", {"container_id": self.names[given["id"]]})
            if result.reply and result.reply["status"].get("state", "CONTAINER_CREATED") == given["state"]:
                return
            if time.monotonic() > end:
                raise SetupFailed("wait_state", result)
            time.sleep(0.02)

    def _step_rpc(self, given: dict[str, Any]) -> None:
        result = self.client.call(given["method"], self.templates.expand(given["request"]))
        if given.get("as"):
            self.names[given["as"]] = result.reply[given["field"]]

    # -- verdicts --------------------------------------------------------------------------------------------------
    def _judge_setup(self, failure: SetupFailed, expect: dict[str, Any]) -> str | None:
        result, wanted = failure.result, expect.get("setup_fails")
        if not wanted or (failure.step, result.code) != (wanted["step"], wanted["code"]):
            return f"setup step {failure.step}: {result.code} {result.text}"
        return self._text_mismatch(result, wanted)

    def _text_mismatch(self, result: Result, expect: dict[str, Any]) -> str | None:
        wanted = expect.get("message_regex")
        if wanted is None or re.search(pattern(wanted, self.names), result.text):
            return None
        return f"text {result.text!r} !~ {wanted}"

    def _judge(self, call: dict[str, Any], expect: dict[str, Any]) -> str | None:
        deadline_s = call.get("client_timeout_s") or self.client.deadline_s(call["method"])
        result = self.client.call(call["method"], self.templates.expand(call["request"]), deadline_s)
        if result.code != expect["code"]:
            return f"code {result.code} ({result.text}), want {expect['code']}"
        why = self._text_mismatch(result, expect)
        if why:
            return why
        if expect.get("stream_messages", result.messages) != result.messages:
            return f"{result.messages} messages, want {expect['stream_messages']}"
        for path, want in expect.get("fields", {}).items():
            why = mismatch(want, at(result.reply, path), self.names)
            if why:
                return f"{path}: {why}"
        return None

    def _events(self, case: dict[str, Any], expect: dict[str, Any]) -> str | None:
        events = Events(self.client)
        if "code" in expect:
            events.wait(lambda: events.code is not None)
            if events.code != expect["code"] or events.received:
                return f"code {events.code}, events {events.received}"
            return self._text_mismatch(Result(str(events.code), events.text), expect)
        self._drain(events)
        for step in case["setup"]:
            self._step(step)
        wanted, tail = expect["events"], expect["events_tail"]
        count = len(wanted) + len(tail["ids"])
        events.wait(lambda: len(events.received) >= count)
        got = [self._summary(event) for event in events.received]
        for want, one in zip(wanted, got, strict=False):
            named = {**want, "id": filled(want["id"], self.names)}
            named["containers"] = {filled(key, self.names): value for key, value in want["containers"].items()}
            if named != one:
                return f"want {named}, got {one}"
        return self._tail_mismatch(tail, got[len(wanted) :])

    def _drain(self, events: Events) -> None:
        """Wait for the events of a pod of our own, and forget all up to them: a backlog is not of this case."""
        pod = self.client.call("RunPodSandbox", {"config": self.templates.pod("marker")}).reply["pod_sandbox_id"]
        for method in ("StopPodSandbox", "RemovePodSandbox"):
            self.client.call(method, {"pod_sandbox_id": pod}, None)
        wanted = {"container_id": pod, "container_event_type": "CONTAINER_DELETED_EVENT"}
        events.wait(lambda: any(wanted.items() <= event.items() for event in events.received))
        events.received.clear()

    @staticmethod
    def _summary(event: dict[str, Any]) -> dict[str, Any]:
        pod = event.get("pod_sandbox_status")
        return {
            "type": event.get("container_event_type", "CONTAINER_CREATED_EVENT"),
            "id": event["container_id"],
            "pod_state": None if pod is None else pod.get("state", "SANDBOX_READY"),
            "containers": {
                one["id"]: one.get("state", "CONTAINER_CREATED") for one in event.get("containers_statuses", [])
            },
        }

    def _tail_mismatch(self, tail: dict[str, Any], got: list[dict[str, Any]]) -> str | None:
        ids = sorted(filled(name, self.names) for name in tail["ids"])
        if sorted(event["id"] for event in got) != ids or any(event["type"] != tail["type"] for event in got):
            return f"the last events are {[(event['type'], event['id'][:6]) for event in got]}, want {ids}"
        if got and got[-1]["id"] != filled(tail["last_id"], self.names):
            return "the last event is not the sandbox's"
        return mismatch(tail["last_pod_state"], got[-1]["pod_state"], self.names) if got else None


def expectation(case: dict[str, Any], profile: str) -> dict[str, Any] | None:
    """What a runtime answered, None where it was not measured. The plain expectation is containerd 1.6.20's."""
    found = case.get("profiles", {}).get(profile)
    if found is None and (profile == "containerd-1.6.20" or profile in case.get("same_on", [])):
        return case["expect"]
    return found


def programs(value: Any) -> Iterator[str]:
    """The first word of every command in a case."""
    if isinstance(value, dict):
        if value.get("command"):
            yield value["command"][0]
        for one in value.values():
            yield from programs(one)
    elif isinstance(value, list):
        for one in value:
            yield from programs(one)


def skipped(case: dict[str, Any], expect: dict[str, Any] | None, options: argparse.Namespace) -> str | None:
    """Why a case is not replayed, if it is not."""
    if expect is None:
        return "not measured"
    if expect.get("server_crash"):
        return "the real server died of it"
    if any(fnmatch.fnmatch(case["name"], glob) for glob in options.exclude.split(",")):
        return "excluded"
    if set(case.get("tags", [])) & set(options.skip_tags.split(",")):
        return "tag"
    if set(programs([case.get("setup", []), case["call"]])) & set(options.skip_programs.split(",")):
        return "program"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket", required=True)
    parser.add_argument("--profile", default="containerd-1.6.20")
    parser.add_argument("--api", default="v1", choices=("v1", "v1alpha2"))
    parser.add_argument("--pb", required=True)
    parser.add_argument("--only", default="*")
    parser.add_argument("--exclude", default="")
    parser.add_argument("--skip-tags", default="")
    parser.add_argument("--skip-programs", default="")
    parser.add_argument("--cases", default=os.path.join(HERE, "cases.yaml"))
    parser.add_argument("--log-dir", default=os.path.join(tempfile.gettempdir(), "refcases-logs"))
    options = parser.parse_args()
    sys.path.insert(0, options.pb)
    client = Client(options.socket, importlib.import_module(f"cri_{options.api}_pb2"))
    replay = Replay(client, options.api, options.log_dir)
    replay.clean_up()
    failed = 0
    with open(options.cases, encoding="utf-8") as content:
        cases = yaml.load(content, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    for case in cases:
        apis = case["api"] if isinstance(case["api"], list) else [case["api"]]
        if options.api not in apis or not any(fnmatch.fnmatch(case["name"], one) for one in options.only.split(",")):
            continue
        expect = expectation(case, options.profile)
        skip = skipped(case, expect, options)
        line: dict[str, Any] = {"name": case["name"]}
        if skip is not None:
            line["skipped"] = skip
        else:
            why = replay.run(case, expect or {})
            failed += why is not None
            line["failed"] = why
        print(json.dumps(line), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
