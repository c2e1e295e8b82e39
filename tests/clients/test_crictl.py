"""crictl 1.37 lives the whole life of pods, containers and images on a served runtime."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from types import ModuleType

pytestmark = pytest.mark.client

BUSYBOX = "docker.io/library/busybox:latest"
UNKNOWN = "registry.example.test/team/server:2.1"
FOREVER = ["sleep", "1000000"]
PORT_MAPPINGS = [{"protocol": 0, "container_port": 80, "host_port": 0}]


@pytest.fixture
def busybox(crictl: Any) -> str:
    crictl.run("pull", BUSYBOX)
    return BUSYBOX


@pytest.fixture
def pod(crictl: Any) -> tuple[str, str]:
    answer: tuple[str, str] = crictl.runp("web")
    return answer


def started(crictl: Any, pod: tuple[str, str], name: str, command: list[str], image: str = BUSYBOX) -> str:
    container: str = crictl.create(pod, name, image, command)
    assert crictl.run("start", container) == container
    return container


def state(crictl: Any, container: str) -> str:
    answer: str = crictl.json("inspect", container)["status"]["state"]
    return answer


def exited(crictl: Any, serving: ModuleType, container: str) -> dict[str, Any]:
    serving.wait_until(lambda: state(crictl, container) == "CONTAINER_EXITED", 10, f"{container} exits")
    status: dict[str, Any] = crictl.json("inspect", container)["status"]
    return status


def test_version_names_the_runtime(crictl: Any) -> None:
    version = dict(line.split(":", 1) for line in crictl.run("version").splitlines())
    assert version["Version"].strip() == "0.1.0"
    assert version["RuntimeApiVersion"].strip() == "v1"
    assert all(value.strip() for value in version.values())


def test_a_pod_is_run_listed_inspected_stopped_and_removed(crictl: Any) -> None:
    sandbox, _ = crictl.runp("web", port_mappings=PORT_MAPPINGS)
    (item,) = crictl.json("pods")["items"]
    assert (item["id"], item["state"], item["metadata"]["name"]) == (sandbox, "SANDBOX_READY", "web")
    assert item["labels"] == {"app": "web"}
    assert item["annotations"] == {"note": "of web"}
    inspected = crictl.json("inspectp", sandbox)
    assert inspected["status"]["network"]["ip"].count(".") == 3
    assert inspected["info"]["pid"] > 0
    assert crictl.run("pods", "--quiet", "--label", "app=web", "--state", "ready") == sandbox
    assert crictl.run("pods", "--quiet", "--label", "app=other") == ""

    assert sandbox in crictl.run("stopp", sandbox)
    assert crictl.json("inspectp", sandbox)["status"]["state"] == "SANDBOX_NOTREADY"
    assert crictl.run("pods", "--quiet", "--state", "NotReady") == sandbox
    assert sandbox in crictl.run("rmp", sandbox)
    assert crictl.json("pods")["items"] == []
    with pytest.raises(Exception, match=f"not find.*{sandbox}|{sandbox}.*not found"):
        crictl.run("inspectp", sandbox)


def test_a_container_is_created_started_listed_stopped_and_removed(
    crictl: Any, busybox: str, pod: tuple[str, str]
) -> None:
    container = crictl.create(pod, "main", busybox, FOREVER)
    assert crictl.json("ps")["containers"] == []
    (listed,) = crictl.json("ps", "--all")["containers"]
    assert (listed["id"], listed["state"], listed["podSandboxId"]) == (container, "CONTAINER_CREATED", pod[0])
    assert listed["labels"] == {"part": "main"}
    assert listed["annotations"] == {"made": "by hand"}

    assert crictl.run("start", container) == container
    (listed,) = crictl.json("ps")["containers"]
    assert listed["state"] == "CONTAINER_RUNNING"
    status = crictl.json("inspect", container)["status"]
    assert status["startedAt"] >= status["createdAt"] > "2"
    assert status["logPath"].endswith("/web/main/0.log")
    assert status["image"]["image"]
    assert status["imageRef"].startswith("sha256:") or "@sha256:" in status["imageRef"]

    # `sleep` is its pod's first process and handles no signal, so only SIGKILL ends it.
    assert crictl.run("stop", "--timeout", "0", container) == container
    status = crictl.json("inspect", container)["status"]
    assert (status["state"], status["exitCode"], status["reason"]) == ("CONTAINER_EXITED", 137, "Error")
    assert status["finishedAt"] >= status["startedAt"]
    assert crictl.run("rm", container) == container
    assert crictl.json("ps", "--all")["containers"] == []


@pytest.mark.parametrize(
    ("command", "code", "reason"),
    [(["true"], 0, "Completed"), (["false"], 1, "Error"), (["sleep", "0"], 0, "Completed")],
)
def test_a_process_that_ends_leaves_its_exit_code(
    crictl: Any, serving: ModuleType, busybox: str, pod: tuple[str, str], command: list[str], code: int, reason: str
) -> None:
    status = exited(crictl, serving, started(crictl, pod, "short", command, busybox))
    assert (status["exitCode"], status["reason"]) == (code, reason)


def test_a_program_that_is_not_in_the_image_fails_to_start(crictl: Any, busybox: str, pod: tuple[str, str]) -> None:
    container = crictl.create(pod, "typo", busybox, ["slepe", "5"])
    with pytest.raises(Exception, match=r"slepe.*executable file not found in \$PATH"):
        crictl.run("start", container)
    status = crictl.json("inspect", container)["status"]
    assert (status["state"], status["exitCode"], status["reason"]) == ("CONTAINER_EXITED", 128, "StartError")


def test_images_are_pulled_listed_inspected_and_removed(crictl: Any) -> None:
    before = crictl.json("images")["images"]
    assert UNKNOWN in crictl.run("pull", UNKNOWN) or "sha256:" in crictl.run("pull", UNKNOWN)
    (image,) = (i for i in crictl.json("images")["images"] if UNKNOWN in i["repoTags"])
    assert len(crictl.json("images")["images"]) == len(before) + 1
    assert int(image["size"]) > 0
    inspected = crictl.json("inspecti", UNKNOWN)["status"]
    assert (inspected["id"], inspected["repoTags"]) == (image["id"], [UNKNOWN])
    assert crictl.json("inspecti", image["id"])["status"] == inspected
    assert "Deleted" in crictl.run("rmi", UNKNOWN)
    assert crictl.json("images")["images"] == before


def test_a_pull_from_an_unreachable_registry_fails(crictl: Any) -> None:
    with pytest.raises(Exception, match=r"registry\.invalid"):
        crictl.run("pull", "registry.invalid/team/server:1")


def test_prune_removes_what_no_container_uses(crictl: Any, pod: tuple[str, str], busybox: str) -> None:
    started(crictl, pod, "main", FOREVER, busybox)
    crictl.run("pull", UNKNOWN)
    pinned = {i["id"] for i in crictl.json("images")["images"] if i.get("pinned")}
    crictl.run("rmi", "--prune")
    left = crictl.json("images")["images"]
    tags = {tag for image in left for tag in image["repoTags"]}
    assert busybox in tags
    assert UNKNOWN not in tags
    assert pinned <= {image["id"] for image in left}


def test_imagefsinfo_names_a_directory_that_exists(crictl: Any) -> None:
    filesystems = crictl.json("imagefsinfo")["status"]["imageFilesystems"]
    assert [Path(filesystem["fsId"]["mountpoint"]).is_dir() for filesystem in filesystems] == [True]
    assert int(filesystems[0]["usedBytes"]["value"]) > 0


def test_stats_of_containers_and_pods(crictl: Any, pod: tuple[str, str], busybox: str) -> None:
    container = started(crictl, pod, "main", FOREVER, busybox)
    (stats,) = crictl.json("stats", container)["stats"]
    assert stats["attributes"]["id"] == container
    assert int(stats["cpu"]["usageCoreNanoSeconds"]["value"]) > 0
    assert int(stats["memory"]["workingSetBytes"]["value"]) > 0
    (pod_stats,) = crictl.json("statsp", "--id", pod[0])["stats"]
    assert pod_stats["attributes"]["id"] == pod[0]
    assert [c["attributes"]["id"] for c in pod_stats["linux"]["containers"]] == [container]


def test_metrics_have_their_descriptors(crictl: Any, pod: tuple[str, str], busybox: str) -> None:
    started(crictl, pod, "main", FOREVER, busybox)
    (metrics,) = crictl.json("metricsp")["podMetrics"]
    assert metrics["podSandboxId"] == pod[0]
    described = {d["name"]: d["labelKeys"] for d in crictl.json("metricdescs")["descriptors"]}
    of_containers = [m for c in metrics["containerMetrics"] for m in c["metrics"]]
    assert of_containers
    for metric in [*metrics["metrics"], *of_containers]:
        assert len(metric["labelValues"]) == len(described[metric["name"]])


def test_info_says_that_runtime_and_network_are_ready(crictl: Any) -> None:
    conditions = {c["type"]: c["status"] for c in crictl.json("info")["status"]["conditions"]}
    assert conditions["RuntimeReady"] is True
    assert conditions["NetworkReady"] is True


def test_runtime_config_names_the_cgroup_driver(crictl: Any) -> None:
    assert crictl.run("runtime-config").split() == ["cgroup", "driver:", "CGROUPFS"]


def test_events_follow_a_life_in_order(crictl: Any, serving: ModuleType, busybox: str, tmp_path: Path) -> None:
    printed = tmp_path / "events.json"
    with serving.Running(crictl.command("events", "--output", "json"), printed, env=crictl.environment()) as listening:

        def events() -> list[tuple[str, str]]:
            listening.must_live()
            return [(event["containerId"], event["containerEventType"]) for event in documents(printed.read_text())]

        # Only pods that come after the subscription are seen; the first that is seen shows that it stands.
        early = iter(range(1000))
        serving.wait_until(lambda: crictl.runp(f"early-{next(early)}") and events(), 20, "crictl prints an event", 0.2)

        pod = crictl.runp("late")
        container = started(crictl, pod, "main", FOREVER, busybox)
        crictl.run("stop", container)
        crictl.run("rm", container)
        crictl.run("stopp", pod[0])
        crictl.run("rmp", pod[0])
        wanted = [f"CONTAINER_{what}_EVENT" for what in ("CREATED", "STARTED", "STOPPED", "DELETED")]

        def types(of: str) -> list[str]:
            return [what for which, what in events() if which == of]

        serving.wait_until(lambda: len(types(pod[0])) >= 4, 10, lambda: f"four events of the sandbox: {types(pod[0])}")
        assert types(container) == wanted
        assert types(pod[0]) == wanted


def documents(text: str) -> list[Any]:
    """JSON documents one after another; what is still being written at the end is left out."""
    found = []
    decoder = json.JSONDecoder()
    text = text.lstrip()
    while text:
        try:
            document, end = decoder.raw_decode(text)
        except json.JSONDecodeError:
            break
        found.append(document)
        text = text[end:].lstrip()
    return found


def test_update_changes_what_inspect_shows(crictl: Any, pod: tuple[str, str], busybox: str) -> None:
    container = crictl.create(
        pod, "main", busybox, FOREVER, linux={"resources": {"cpu_shares": 102, "memory_limit_in_bytes": 1 << 27}}
    )
    crictl.run("start", container)
    assert container in crictl.run("update", "--cpu-share", "512", "--memory", str(1 << 28), container)
    resources = crictl.json("inspect", container)["status"]["resources"]["linux"]
    assert (resources["cpuShares"], resources["memoryLimitInBytes"]) == ("512", str(1 << 28))
    assert state(crictl, container) == "CONTAINER_RUNNING"


def test_logs_are_read_from_the_container_and_reopened(
    crictl: Any, serving: ModuleType, busybox: str, pod: tuple[str, str]
) -> None:
    container = started(crictl, pod, "talks", ["echo", "hello", "world"], busybox)
    exited(crictl, serving, container)
    assert crictl.run("logs", container) == "hello world"
    stamped = crictl.run("logs", "--timestamps", container)
    assert stamped.startswith("20")
    assert stamped.endswith(" hello world")

    lasting = started(crictl, pod, "main", FOREVER, busybox)
    log = crictl.directory / "logs" / "web" / "main" / "0.log"
    assert log.exists()
    log.rename(log.with_suffix(".rotated"))
    crictl.run("logs", "--reopen", lasting)
    assert log.exists()


def test_a_checkpoint_is_an_archive(crictl: Any, busybox: str, pod: tuple[str, str], tmp_path: Path) -> None:
    container = started(crictl, pod, "main", FOREVER, busybox)
    archive = tmp_path / "checkpoint.tar"
    assert container in crictl.run("checkpoint", "--export", str(archive), container)
    with tarfile.open(archive) as opened:
        assert opened.getnames()
    assert state(crictl, container) == "CONTAINER_RUNNING"


def test_force_removes_all_pods_with_running_containers(crictl: Any, busybox: str) -> None:
    for number in range(3):
        started(crictl, crictl.runp(f"web-{number}"), "main", FOREVER, busybox)
    assert len(crictl.json("ps")["containers"]) == 3
    crictl.run("rmp", "--force", "--all")
    assert crictl.json("pods")["items"] == []
    assert crictl.json("ps", "--all")["containers"] == []


def test_what_does_not_exist_is_named(crictl: Any, busybox: str, pod: tuple[str, str]) -> None:
    for command in ("inspect", "start"):
        with pytest.raises(Exception, match="0123456789abcdef"):
            crictl.run(command, "0123456789abcdef")
    with pytest.raises(Exception, match="0123456789abcdef"):
        crictl.create(("0123456789abcdef", pod[1]), "main", busybox, FOREVER)
