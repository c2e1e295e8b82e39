"""Runs a real kubelet without an API server on a served runtime, in private namespaces, and reads what it says.

The rule: server and kubelet share network, mount and IPC namespaces that nothing else is in; the kubelet learns its
pods from manifest files alone, and is asked over HTTP inside its namespace.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Iterable

READ_ONLY_PORT: Final = 20255
START_SECONDS: Final = 60.0
# Without /usr/sbin a kubelet finds no iptables, on every machine alike.
KUBELET_PATH: Final = "/usr/bin:/bin"
GET: Final = """
import sys, urllib.error, urllib.request
try:
    with urllib.request.urlopen(sys.argv[1], timeout=30) as answer:
        status, body = answer.status, answer.read()
except urllib.error.HTTPError as error:
    status, body = error.code, error.read()
except OSError as error:
    status, body = 0, str(error).encode()
sys.stdout.buffer.write(b"%d\\n" % status + body)
"""


def why_not_possible() -> str | None:
    """What private namespaces lack on this machine, or None."""
    if os.geteuid() != 0:
        return "a kubelet and its private namespaces need root"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "--ipc", "true"], capture_output=True, text=True, check=False
    )
    return tried.stderr.strip() or "unshare failed" if tried.returncode else None


class PrivateNode:
    """Network, mount and IPC namespaces of their own with loopback up; they end with the context."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        holder = Path(__file__).with_name("node_holder.py")
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--mount", "--ipc", "--", sys.executable, str(holder), str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != "held\n":
            _, errors = self._holder.communicate()
            raise RuntimeError(f"private namespaces could not be made: {errors.strip()}")

    @property
    def prefix(self) -> list[str]:
        """What comes before a command so that it runs in these namespaces, in the process that was started."""
        return ["nsenter", "--target", str(self._holder.pid), "--net", "--mount", "--ipc", "--"]

    def get(self, url: str) -> tuple[int, bytes]:
        """HTTP status and body of a URL as seen from inside; status 0 and the reason if nobody answers."""
        done = subprocess.run(
            [*self.prefix, sys.executable, "-I", "-S", "-c", GET, url], capture_output=True, timeout=60, check=True
        )
        status, _, body = done.stdout.partition(b"\n")
        return int(status), body

    def path(self, inside: str) -> Path:
        """A path of these namespaces as the machine sees it."""
        return Path(f"/proc/{self._holder.pid}/root{inside}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._holder.communicate(timeout=5)
        self._holder.kill()
        self._holder.wait()


@dataclass(frozen=True)
class Release:
    """A kubelet release and how it wants to be told what all of them need."""

    name: str
    api: str
    in_file: dict[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()

    @property
    def program(self) -> str:
        return f"kubelet-{self.name}"


ENDPOINT: Final = "ENDPOINT"  # replaced by the socket's URL
RELEASES: Final = {
    release.name: release
    for release in (
        Release("1.37", "v1", in_file={"failCgroupV1": False, "containerRuntimeEndpoint": ENDPOINT}),
        Release("1.25", "v1alpha2", flags=("--container-runtime=remote", f"--container-runtime-endpoint={ENDPOINT}")),
    )
}


def configuration(release: Release, endpoint: str, manifests: Path) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "staticPodPath": str(manifests),
        "fileCheckFrequency": "1s",
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": False,
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        # Only what any root may do, so that the log does not depend on the machine's limits.
        "maxOpenFiles": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "oomScoreAdj": 0,
        "readOnlyPort": READ_ONLY_PORT,
        "port": 20250,
        "healthzPort": 20248,
        # More than the 110 pods of the test, which has a few others beside them.
        "maxPods": 150,
        # A test's disk may be nearly full; that is not what is tested.
        "evictionHard": {"memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        **{name: endpoint if value == ENDPOINT else value for name, value in release.in_file.items()},
    }


class Node:
    """A kubelet of one release with its manifests; it may be stopped and started again on the same state."""

    def __init__(
        self,
        release: Release,
        program: Path,
        endpoint: str,
        private: PrivateNode,
        directory: Path,
        start: Callable[..., Any],
    ) -> None:
        self.release = release
        self.private = private
        self.manifests = directory / "manifests"
        self.manifests.mkdir(parents=True)
        self.log = directory / "kubelet.log"
        self._start = start
        config = directory / "kubelet.json"
        config.write_text(json.dumps(configuration(release, endpoint, self.manifests)))
        flags = [flag.replace(ENDPOINT, endpoint) for flag in release.flags]
        self._command = [
            *private.prefix,
            str(program),
            f"--config={config}",
            f"--root-dir={directory / 'root'}",
            f"--cert-dir={directory / 'certificates'}",
            "--hostname-override=kl",
            "-v=2",
            *flags,
        ]
        self.kubelet: Any = None

    def start(self) -> None:
        self.kubelet = self._start(self._command, self.log, env={**os.environ, "PATH": KUBELET_PATH})

    def stop(self) -> None:
        if self.kubelet is not None:
            self.kubelet.end()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def get(self, path: str) -> tuple[int, bytes]:
        self.kubelet.must_live()
        return self.private.get(f"http://127.0.0.1:{READ_ONLY_PORT}{path}")

    def pods(self) -> dict[str, dict[str, Any]]:
        """The pods that the kubelet knows, by the name in their manifest; none while it does not answer yet."""
        status, body = self.get("/pods")
        if status != 200:
            return {}
        items = json.loads(body).get("items") or []
        # A static pod's name ends with the node's.
        return {item["metadata"]["name"].removesuffix("-kl"): item for item in items}

    def place(self, name: str, spec: dict[str, Any]) -> None:
        """Puts a manifest in place whole, as the kubelet may read at any time."""
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
            "spec": {"terminationGracePeriodSeconds": 1, **spec},
        }
        written = self.manifests.parent / f"{name}.json"
        written.write_text(json.dumps(manifest))
        written.rename(self.manifests / f"{name}.json")

    def withdraw(self, name: str) -> None:
        (self.manifests / f"{name}.json").unlink()

    def placed(self) -> list[str]:
        return sorted(path.stem for path in self.manifests.iterdir())


KLOG_ERROR: Final = re.compile(r"^[EF]\d{4} ")


def init_is_hidden() -> bool:
    """Whether even root may not see the namespaces of process 1, as in some sandboxes."""
    try:
        os.readlink("/proc/1/ns/pid")
    except OSError:
        return True
    return False


def has_cgroup_v1() -> bool:
    return not Path("/sys/fs/cgroup/cgroup.controllers").exists()


def has_no_identity() -> bool:
    """Whether nothing tells this machine from others, as in a container made from a distribution's plain image."""
    places = ("/sys/class/dmi/id/product_uuid", "/proc/device-tree/system-id", "/proc/device-tree/vm,uuid")
    return not any(Path(place).exists() for place in (*places, "/etc/machine-id"))


# What an entry's `only_on` may name: facts of a machine that decide whether a kubelet logs the line.
MACHINE_FACTS: Final[dict[str, Callable[[], bool]]] = {
    "init is hidden": init_is_hidden,
    "cgroup v1": has_cgroup_v1,
    "no machine id": has_no_identity,
}


@dataclass(frozen=True)
class Allowed:
    """Fixed words of one message that a kubelet logs as an error here, and why that is right."""

    words: str
    reason: str
    only_on: str = ""
    #: "always": a log without the line is at fault. "sometimes": whether the line comes is a matter of timing.
    happens: str = "always"


def allowed_lines(release: str, file: Path | None = None) -> list[Allowed]:
    """The committed entries for a release that hold on this machine; a malformed entry is refused."""
    file = file or Path(__file__).with_name("kubelet_log_allowed.toml")
    entries = tomllib.loads(file.read_text()).get("kubelet", {}).get(release, [])
    for number, entry in enumerate(entries, 1):
        where = f"{file.name}: entry {number} of kubelet {release}"
        texts = all(isinstance(value, str) and value.strip() for value in entry.values())
        if not texts or set(entry) - {"only_on", "happens"} != {"words", "reason"}:
            raise ValueError(f"{where} needs `words` and `reason`, both text")
        if "only_on" in entry and entry["only_on"] not in MACHINE_FACTS:
            raise ValueError(f"{where}: `only_on` is {entry['only_on']!r}, not one of: {', '.join(MACHINE_FACTS)}")
        if entry.get("happens", "always") not in ("always", "sometimes"):
            raise ValueError(f"{where}: `happens` is {entry['happens']!r}, not `always` or `sometimes`")
    allowed = [Allowed(**entry) for entry in entries]
    return [entry for entry in allowed if not entry.only_on or MACHINE_FACTS[entry.only_on]()]


def judge_log(lines: Iterable[str], allowed: list[Allowed]) -> list[str]:
    """What is wrong with a kubelet's log: error lines that no entry allows, and entries that allowed nothing."""
    faults = []
    used: set[Allowed] = set()
    for line in lines:
        if KLOG_ERROR.match(line):
            matching = {entry for entry in allowed if entry.words in line}
            used |= matching
            if not matching:
                faults.append(f"not allowed: {line.rstrip()}")
    unused = [entry for entry in allowed if entry not in used and entry.happens == "always"]
    return faults + [f"matched nothing, so take it out: {entry.words!r}" for entry in unused]
