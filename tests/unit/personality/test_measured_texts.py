"""The forms against what real containerds answered: code and text of every measured refusal that core can name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from fakecri.base.reasons import Code, CriError, Reason
from fakecri.personality.model import word
from fakecri.personality.registry import PERSONALITIES
from fakecri.wire.methods import METHODS

CASES = Path(__file__).parents[2] / "reference" / "cases.yaml"
PROFILES = {"containerd-1.6.20": "containerd-1.6", "containerd-2.1.9": "containerd-2.1"}
F = "f" * 64
FULL = "0123456789abcdef" * 4
#: Ids that the cases' regexes name.
IDS = {"P": FULL, "C": "c" * 64, "P2": "2" * 64}
LOCAL = {"host": "127.0.0.1:5055", "status": 401, "status_text": "Unauthorized"}


def pull(repository: str, tag: str = "v1", host: str = "127.0.0.1:5055", **more: object) -> dict[str, object]:
    return {
        "image": f"{host}/{repository}:{tag}",
        "host": host,
        "repository": f"{host}/{repository}",
        "reference": tag,
        "url": f"http://{host}/v2/{repository}/manifests/{tag}",
        **more,
    }


UNAUTHORIZED = {"status": 401, "status_text": "Unauthorized"}
FAILED = {"status": 500, "status_text": "Internal Server Error"}
ROUTING = {"service": "runtime.v1.RuntimeService"}
LAYER = {
    "got": "sha256:fdec5a296b633a06b91e0c2df1cced8e68878e580e339ad02d39c1285d9fdab7",
    "expected": "sha256:88b7747cad8dc0634a9a66479233d72a19296c6b04c8ef77fae078ffe8312ef1",
}
NAMES = {"name": "dup_default_uid-dup_0", "owner": IDS["P"]}

#: Case → the refusal that it shows. Method and wording come from the case.
REFUSALS: dict[str, tuple[Reason, dict[str, object]]] = {
    "checkpoint.empty-id": (Reason.CONTAINER_ID_EMPTY, {"id": ""}),
    "checkpoint.notfound": (Reason.CONTAINER_NOT_FOUND, {"id": F}),
    "runpod.nil-config": (Reason.SANDBOX_CONFIG_MISSING, {}),
    "runpod.no-metadata": (Reason.SANDBOX_METADATA_MISSING, {}),
    "runpod.unknown-handler": (Reason.RUNTIME_HANDLER_UNKNOWN, {"id": FULL, "handler": "nosuch", "known": []}),
    "runpod.broken-handler-binary": (
        Reason.OCI_RUNTIME_MISSING,
        {"id": FULL, "handler": "broken", "binary": "/nonexistent/runc"},
    ),
    "runpod.duplicate-name": (Reason.SANDBOX_NAME_RESERVED, NAMES),
    "runpod.duplicate-after-stop": (Reason.SANDBOX_NAME_RESERVED, NAMES),
    "runpod.bad-sysctl": (Reason.SYSCTL_INVALID, {"id": FULL, "name": "nosuch.ctl", "value": "1"}),
    "runpod.hostname-too-long": (Reason.HOSTNAME_TOO_LONG, {"id": FULL, "hostname": "h" * 70}),
    "podstatus.notfound": (Reason.SANDBOX_NOT_FOUND, {"id": F}),
    "podstatus.empty-id": (Reason.SANDBOX_ID_EMPTY, {"id": ""}),
    "podstatus.container-id-given": (Reason.SANDBOX_NOT_FOUND, {"id": IDS["C"]}),
    "stoppod.notfound": (Reason.SANDBOX_NOT_FOUND, {"id": F}),
    "stoppod.empty-id": (Reason.SANDBOX_ID_EMPTY, {"id": ""}),
    "stoppod.removed": (Reason.SANDBOX_NOT_FOUND, {"id": IDS["P"]}),
    "removepod.empty-id": (Reason.SANDBOX_ID_EMPTY, {"id": ""}),
    "create.nil-config": (Reason.CONTAINER_CONFIG_MISSING, {}),
    "create.no-metadata": (Reason.CONTAINER_METADATA_MISSING, {}),
    "create.empty-image": (Reason.CONTAINER_IMAGE_EMPTY, {}),
    "create.unknown-image": (Reason.CONTAINER_IMAGE_NOT_FOUND, {"image": "example.com/no/such:v9"}),
    "create.invalid-image": (Reason.CONTAINER_IMAGE_NOT_FOUND, {"image": "UPPER//case"}),
    "create.pod-empty-id": (Reason.SANDBOX_ID_EMPTY, {"id": ""}),
    "create.pod-notready": (Reason.CONTAINER_SANDBOX_NOT_RUNNING, {"id": IDS["P"]}),
    "create.duplicate-name": (
        Reason.CONTAINER_NAME_RESERVED,
        {"name": "dup_p_default_uid-p_0", "owner": IDS["C"]},
    ),
    "create.no-command-image-without-cmd": (Reason.NO_COMMAND, {"id": FULL}),
    "create.mount-empty-host-path": (Reason.MOUNT_HOST_PATH_EMPTY, {"id": FULL}),
    "create.device-missing": (Reason.DEVICE_MISSING, {"id": FULL, "path": "/dev/nosuchdev"}),
    "create.unknown-user": (Reason.USER_UNKNOWN, {"id": FULL, "user": "nosuchuser"}),
    "create.group-without-user": (Reason.GROUP_WITHOUT_USER, {"id": FULL, "group": 5}),
    "create.seccomp-localhost-missing": (
        Reason.SECCOMP_PROFILE_MISSING,
        {"id": FULL, "profile": "/nosuch/profile.json"},
    ),
    "create.after-remove-pod": (Reason.CONTAINER_SANDBOX_NOT_FOUND, {"id": IDS["P"]}),
    "start.empty-id": (Reason.CONTAINER_ID_EMPTY, {"id": ""}),
    "start.twice": (Reason.CONTAINER_BAD_STATE, {"id": IDS["C"], "state": "RUNNING", "input": "START"}),
    "start.stopped": (Reason.CONTAINER_BAD_STATE, {"id": IDS["C"], "state": "EXITED", "input": "START"}),
    "start.command-not-found": (
        Reason.COMMAND_NOT_FOUND,
        {"id": IDS["C"], "command": "/nosuchbin", "detail": "stat /nosuchbin: no such file or directory"},
    ),
    "start.command-not-executable": (
        Reason.COMMAND_NOT_EXECUTABLE,
        {"id": IDS["C"], "command": "/etc/passwd", "detail": "permission denied"},
    ),
    "start.bad-workdir": (
        Reason.WORKING_DIRECTORY_INVALID,
        {"id": IDS["C"], "path": "/etc/passwd", "detail": "mkdir /etc/passwd: not a directory"},
    ),
    "cstatus.notfound": (Reason.CONTAINER_NOT_FOUND, {"id": F}),
    "cstatus.empty-id": (Reason.CONTAINER_ID_EMPTY, {"id": ""}),
    "stop.notfound": (Reason.CONTAINER_NOT_FOUND, {"id": F}),
    "rm.empty-id": (Reason.CONTAINER_ID_EMPTY, {"id": ""}),
    "update.notfound": (Reason.CONTAINER_NOT_FOUND, {"id": F}),
    "update.empty-id": (Reason.CONTAINER_ID_EMPTY, {"id": ""}),
    "update.mem-too-low": (Reason.MEMORY_LIMIT_BELOW_USAGE, {"id": IDS["C"], "limit": 4194304, "usage": 9}),
    "execsync.exited": (Reason.CONTAINER_NOT_RUNNING, {"id": IDS["C"], "state": "EXITED"}),
    "execsync.notfound": (Reason.CONTAINER_NOT_FOUND, {"id": F}),
    "execsync.large-output-17MiB": (Reason.RESPONSE_TOO_LARGE, {"size": 16777221, "limit": 16777216}),
    "exec.created": (Reason.CONTAINER_NOT_RUNNING, {"id": IDS["C"], "state": "CREATED"}),
    "exec.notfound": (Reason.CONTAINER_NOT_FOUND, {"id": F}),
    "exec.empty-id": (Reason.CONTAINER_ID_EMPTY, {"id": ""}),
    "attach.created": (Reason.CONTAINER_NOT_RUNNING, {"id": IDS["C"], "state": "CREATED"}),
    "attach.notfound": (Reason.CONTAINER_NOT_FOUND, {"id": F}),
    "attach.empty-id": (Reason.CONTAINER_ID_EMPTY, {"id": ""}),
    "portforward.notready": (Reason.SANDBOX_NOT_READY, {"id": IDS["P"]}),
    "portforward.notfound": (Reason.SANDBOX_NOT_FOUND, {"id": F}),
    "portforward.empty-id": (Reason.SANDBOX_ID_EMPTY, {"id": ""}),
    "reopen.created": (Reason.CONTAINER_NOT_RUNNING, {"id": IDS["C"], "state": "CREATED"}),
    "reopen.notfound": (Reason.CONTAINER_NOT_FOUND, {"id": F}),
    "reopen.empty-id": (Reason.CONTAINER_ID_EMPTY, {"id": ""}),
    "cstats.exited": (Reason.STATS_OF_STOPPED_CONTAINER, {"id": IDS["C"]}),
    "cstats.notfound": (Reason.CONTAINER_NOT_FOUND, {"id": F}),
    "cstats.empty-id": (Reason.CONTAINER_ID_EMPTY, {"id": ""}),
    "podstats.notready": (Reason.STATS_OF_STOPPED_SANDBOX, {"id": IDS["P"]}),
    "podstats.notfound": (Reason.SANDBOX_NOT_FOUND, {"id": F}),
    "podstats.empty-id": (Reason.SANDBOX_ID_EMPTY, {"id": ""}),
    "listpodstats.all": (Reason.STATS_OF_STOPPED_SANDBOX, {"id": IDS["P2"]}),
    "imagestatus.empty": (Reason.IMAGE_REFERENCE_EMPTY, {}),
    "rmi.empty": (Reason.IMAGE_REFERENCE_EMPTY, {}),
    "pull.empty": (Reason.IMAGE_REFERENCE_EMPTY, {}),
    "pull.invalid-ref": (
        Reason.IMAGE_REFERENCE_UPPERCASE,
        {"image": "UPPER//case", "repository": "UPPER//case"},
    ),
    "pull.unknown-repo": (Reason.IMAGE_NOT_IN_REGISTRY, pull("no/such", missing="name")),
    "pull.unknown-tag": (Reason.IMAGE_NOT_IN_REGISTRY, pull("team/pull", "nope", missing="manifest")),
    "pull.bad-credentials": (Reason.REGISTRY_BAD_CREDENTIALS, pull("private/app", **UNAUTHORIZED)),
    "pull.auth-invalid-base64": (
        Reason.REGISTRY_AUTH_MALFORMED,
        pull("private/app", detail="illegal base64 data at input byte 0"),
    ),
    "pull.server-error": (Reason.REGISTRY_FAILED, pull("err500/app", **FAILED)),
    "pull.digest-mismatch": (Reason.IMAGE_DIGEST_MISMATCH, pull("corrupt/app", **LAYER)),
    "pull.connection-refused": (
        Reason.REGISTRY_UNREACHABLE,
        pull("a/b", host="127.0.0.1:5999", address="127.0.0.1:5999"),
    ),
    "runtimeconfig": (Reason.UNKNOWN_METHOD, {**ROUTING, "method": "RuntimeConfig"}),
    "unimpl.StreamPodSandboxes": (Reason.UNKNOWN_METHOD, {**ROUTING, "method": "StreamPodSandboxes"}),
    "events.unimplemented-or-stream": (Reason.METHOD_NOT_IMPLEMENTED, {"method": "GetContainerEvents"}),
}
ABSENCES = (Reason.UNKNOWN_METHOD, Reason.METHOD_NOT_IMPLEMENTED)


def expected(case: dict, profile: str) -> dict | None:
    found = case.get("profiles", {}).get(profile)
    if found is None and (profile == "containerd-1.6.20" or profile in case.get("same_on", [])):
        found = case["expect"]
    return found


def measured() -> list:
    rows = []
    for case in yaml.safe_load(CASES.read_text()):
        if case["name"] not in REFUSALS or case["api"] == "v1alpha2":
            continue
        for profile, name in PROFILES.items():
            want = expected(case, profile)
            if not (want and want.get("message_regex")):
                continue
            if want["code"] != "UNIMPLEMENTED" or REFUSALS[case["name"]][0] in ABSENCES:
                rows.append(pytest.param(case, want, name, id=f"{case['name']}-{name}"))
    return rows


@pytest.mark.parametrize(("case", "want", "name"), measured())
def test_the_words_are_those_that_were_measured(case, want, name):
    reason, facts = REFUSALS[case["name"]]
    code, text = word(PERSONALITIES[name], case["call"]["method"], CriError(reason, **facts))
    pattern = re.sub(r"\$\{(\w+)\}", lambda match: IDS[match[1]], want["message_regex"])
    assert Code(code).name == want["code"]
    assert re.search(pattern, text), f"{text!r} !~ {pattern}"


def test_every_named_case_is_in_the_table():
    known = {case["name"] for case in yaml.safe_load(CASES.read_text())}
    assert set(REFUSALS) <= known


def absent(method: str, want: dict) -> str:
    return "NOT_WRITTEN" if f"method {method} not implemented" in want["message_regex"].replace("\\", "") else "UNKNOWN"


@pytest.mark.parametrize(("profile", "name"), PROFILES.items())
def test_absent_methods_are_those_that_were_measured(profile, name):
    """Of each RPC that a real containerd did not have, the same kind of absence; and no RPC is absent that it had."""
    personality = PERSONALITIES[name]
    want = {}
    for case in yaml.safe_load(CASES.read_text()):
        found = expected(case, profile)
        if found and case["api"] != "v1alpha2":
            method = case["call"]["method"]
            want[method] = absent(method, found) if found.get("code") == "UNIMPLEMENTED" else ""
    ours = {method: how.name for method, how in personality.behaviour.unimplemented.items()}
    measured_absent = {method: how for method, how in want.items() if how}
    assert measured_absent.items() <= ours.items()
    assert not {method for method, how in want.items() if not how} & ours.keys()
    newer = {s.name for s in METHODS.values() if s.api == "v1" and s.since > personality.level}
    assert newer <= ours.keys(), "a level flag must not bring what the runtime never had"
