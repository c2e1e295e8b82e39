"""CreateContainer: what it makes, each of its checks and their order, and that a refusal leaves nothing."""

from __future__ import annotations

import re

import pytest

from fakecri.base.reasons import Code, CriError, Reason
from fakecri.core.rpc.container_create import CHECKS
from fakecri.core.traits import CreateInStoppedSandbox, MissingCommandFails, OnDuplicateName
from fakecri.personality.model import derive
from fakecri.personality.registry import PERSONALITIES
from fakecri.wire import messages

REFERENCE = PERSONALITIES["reference"]
EVERY_CHECK = derive(
    REFERENCE,
    name="every check",
    summary="",
    traits={"missing_command_fails": MissingCommandFails.AT_CREATE},
    behaviour={"check_orders": {"CreateContainer": tuple(CHECKS)}},
)


@pytest.fixture
def pod(client):
    return client.run_pod()


def linux(**security):
    context = messages.LinuxContainerSecurityContext(**security)
    return messages.LinuxContainerConfig(security_context=context)


def assert_nothing_left(client) -> None:
    """No container, and the name is free."""
    assert client.containers() == []
    for sandbox in client.engine.runtime.sandboxes:
        assert not sandbox.containers
    assert client.engine.runtime.containers.name_owner("main_pod_default_uid-pod_0") is None


def test_a_container_is_created_and_nothing_runs(client, pod) -> None:
    config = client.pod_config(log_directory="/var/log/pods/a")
    container = client.create(pod, pod_config=config, log_path="main/0.log", labels={"a": "1"})
    assert re.fullmatch(r"[0-9a-f]{64}", container)
    status = client.status(container)
    assert status.state == messages.CONTAINER_CREATED
    assert status.log_path == "/var/log/pods/a/main/0.log"
    assert (status.started_at, status.finished_at, status.exit_code, status.reason) == (0, 0, 0, "")
    assert status.created_at > 0
    assert client.engine.runtime.container(container).process is None
    assert client.containers() == [container]


def test_the_pod_may_be_named_by_a_prefix_and_by_another_pods_config(client, pod) -> None:
    container = client.create(pod[:10], pod_config=client.pod_config("another"))
    assert client.ListContainers().containers[0].pod_sandbox_id == pod
    assert client.engine.runtime.container(container).name == "main_another_default_uid-another_0"


@pytest.mark.parametrize(
    "image",
    ["busybox:1.36", "library/busybox:1.36", "docker.io/library/busybox:1.36", "docker.io/busybox:1.36"],
)
def test_an_image_has_many_names(client, pod, image) -> None:
    assert client.containers(id=client.create(pod, image=image))


def test_an_image_may_be_given_by_its_id(client, pod) -> None:
    image = client.ListImages().images[-1].id
    for number, given in enumerate((image, image.removeprefix("sha256:"), image[:25])):
        client.create(pod, f"c{number}", image=given)


def test_a_name_is_taken_until_the_container_is_removed(client, pod) -> None:
    container = client.create(pod)
    name = "main_pod_default_uid-pod_0"
    text = (
        f'failed to reserve container name "{name}"; check if another CreateContainer request is in progress:'
        f' name "{name}" is reserved for "{container}"'
    )
    failed = client.refused("CreateContainer", **client.creation(pod))
    assert (failed.code, failed.text) == (Code.FAILED_PRECONDITION, text)
    client.create(pod, attempt=1)
    client.create(client.run_pod("other"), pod_config=client.pod_config("other"))
    client.RemoveContainer(container_id=container)
    client.create(pod)


def test_a_runtime_may_answer_a_taken_name_with_its_holder(make_client) -> None:
    sharing = derive(
        REFERENCE,
        name="sharing",
        summary="",
        traits={"duplicate_container_name": OnDuplicateName.RETURN_EXISTING},
    )
    client = make_client(personality=sharing)
    pod = client.run_pod()
    container = client.run(pod)
    client.StopContainer(container_id=container)
    assert client.create(pod) == container
    assert client.containers() == [container]


def test_of_two_calls_for_one_name_at_once_one_is_refused(client, pod, gate) -> None:
    gate.hold("CreateContainer", "checked")
    first = client.begin("CreateContainer", **client.creation(pod))
    gate.at.clear()
    second = client.begin("CreateContainer", **client.creation(pod))
    gate.release()
    assert client.containers() == [second.answer.container_id]
    assert first.reply.code == Code.FAILED_PRECONDITION
    assert f'reserved for "{second.answer.container_id}"' in first.reply.text


REFUSALS = {
    "unknown pod": ({"pod_sandbox_id": "nope"}, Code.NOT_FOUND, 'failed to find sandbox id "nope": not found'),
    "empty pod id": ({"pod_sandbox_id": ""}, Code.UNKNOWN, 'failed to find sandbox id "": prefix can\'t be empty'),
    "no config": ({"config": None}, Code.UNKNOWN, "container config must include metadata"),
    "no metadata": ({"config": {"metadata": None}}, Code.UNKNOWN, "container config must include metadata"),
    "no sandbox config": ({"sandbox_config": None}, Code.UNKNOWN, "pod sandbox config must include metadata"),
    "no image": ({"config": {"image": None}}, Code.UNKNOWN, 'failed to resolve image "": ambiguous digest string'),
    "unknown image": (
        {"config": {"image": messages.ImageSpec(image="nope:1")}},
        Code.NOT_FOUND,
        'failed to check if this is a checkpoint image: failed to resolve image "nope:1": not found',
    ),
    "malformed image": (
        {"config": {"image": messages.ImageSpec(image="UPPER CASE")}},
        Code.NOT_FOUND,
        'failed to check if this is a checkpoint image: failed to resolve image "UPPER CASE": not found',
    ),
    "mount without host path": (
        {"config": {"mounts": [messages.Mount(container_path="/a")]}},
        Code.UNKNOWN,
        (
            'failed to generate container "ID" spec: failed to generate spec:'
            ' failed to mkdir "": mkdir : no such file or directory'
        ),
    ),
    "image volume that is not there": (
        {"config": {"mounts": [messages.Mount(container_path="/a", image=messages.ImageSpec(image="nope:2"))]}},
        Code.NOT_FOUND,
        'ImageVolumeMountFailed: failed to get image "nope:2": not found',
    ),
    "device": (
        {"config": {"devices": [messages.Device(host_path="/dev/nope", container_path="/dev/a")]}},
        Code.UNKNOWN,
        'failed to generate container "ID" spec: failed to generate spec: lstat /dev/nope: no such file or directory',
    ),
    "seccomp": (
        {
            "config": {
                "linux": linux(
                    seccomp=messages.SecurityProfile(
                        profile_type=messages.SecurityProfile.Localhost, localhost_ref="/p.json"
                    )
                )
            }
        },
        Code.UNKNOWN,
        (
            'failed to create containerd container: cannot load seccomp profile "/p.json":'
            " open /p.json: no such file or directory"
        ),
    ),
    "user": ({"config": {"linux": linux(run_as_username="nobody2")}}, Code.UNKNOWN, "no users found"),
    "group without user": (
        {"config": {"linux": linux(run_as_group=messages.Int64Value(value=5))}},
        Code.UNKNOWN,
        'failed to get container spec opts: failed to generate user string: user group "5" is specified without user',
    ),
}


def altered(fields, change):
    """The request's fields with some of them replaced, or (None) taken away."""
    changed = dict(fields)
    for name, value in change.items():
        if value is None:
            del changed[name]
        elif isinstance(value, dict):
            inner = type(changed[name])()
            inner.CopyFrom(changed[name])
            for part, content in value.items():
                inner.ClearField(part)
                if content is not None:
                    inner.MergeFrom(type(inner)(**{part: content}))
            changed[name] = inner
        else:
            changed[name] = value
    return changed


@pytest.mark.parametrize("case", REFUSALS)
def test_refusals(client, pod, case) -> None:
    change, code, text = REFUSALS[case]
    failed = client.refused("CreateContainer", **altered(client.creation(pod), change))
    shown = re.sub(r'container "[0-9a-f]{64}"', 'container "ID"', failed.text)
    assert failed.code == code
    assert shown == text or (case == "user" and shown.endswith(text))
    assert_nothing_left(client)


def test_no_command_anywhere(client, pod) -> None:
    client.pull("registry.k8s.io/coredns/coredns:v1.11.1")
    client.create(pod, "entry", image="registry.k8s.io/coredns/coredns:v1.11.1", command=[])
    client.engine.runtime.images.resolve("docker.io/library/busybox:1.36").command = ()
    failed = client.refused("CreateContainer", **client.creation(pod, command=[]))
    assert failed.text.endswith("spec: failed to generate spec: no command specified")
    client.create(pod, "args", command=[], args=["true"])


#: What is wrong in a request when everything is, in the order in which the reference notices it.
IN_ORDER = (
    ("pod_sandbox_id", "failed to find sandbox"),
    ("config", "container config must include metadata"),
    ("sandbox_config", "pod sandbox config must include metadata"),
    ("image", "failed to resolve image"),
    ("mounts", "failed to mkdir"),
    ("devices", "lstat /dev/nope"),
    ("seccomp", "cannot load seccomp profile"),
    ("user", "no users found"),
)


def test_checks_come_in_order(client, pod) -> None:
    good = client.creation(pod)
    wrong = altered(good, {"config": None, "sandbox_config": None, "pod_sandbox_id": "nope"})
    bad_parts = {
        "image": {"image": messages.ImageSpec(image="nope:1")},
        "mounts": {"mounts": [messages.Mount(container_path="/a")]},
        "devices": {"devices": [messages.Device(host_path="/dev/nope")]},
    }
    profile = messages.SecurityProfile(profile_type=messages.SecurityProfile.Localhost, localhost_ref="/p")
    everything_bad = altered(
        good,
        {
            "config": {
                **bad_parts["image"],
                **bad_parts["mounts"],
                **bad_parts["devices"],
                "linux": linux(run_as_username="nobody2", seccomp=profile),
            }
        },
    )["config"]
    for part, text in IN_ORDER:
        assert text in client.refused("CreateContainer", **wrong).text
        if part in ("pod_sandbox_id", "sandbox_config"):
            wrong[part] = good[part]
        elif part == "config":
            wrong["config"] = everything_bad
        elif part == "seccomp":
            wrong["config"].linux.security_context.ClearField("seccomp")
        elif part == "user":
            wrong["config"].linux.security_context.ClearField("run_as_username")
        else:
            wrong["config"].ClearField(part)
            wrong["config"].MergeFrom(messages.ContainerConfig(**{part: getattr(good["config"], part)}))
    client.CreateContainer(**wrong)


def test_the_defaults_take_what_containerd_takes(client, pod) -> None:
    client.create(pod, "", mounts=[messages.Mount(host_path="/h")], linux=linux())
    asked = messages.Capability(add_capabilities=["NO_SUCH"])
    client.create(pod, "capable", linux=linux(capabilities=asked))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"metadata": messages.ContainerMetadata(attempt=1)}, "must include a name"),
        ({"image": messages.ImageSpec(image="busybox:1.36")}, "user specified image must not be empty"),
        ({"mounts": [messages.Mount(host_path="/h")]}, "mount must have a container path"),
        ({"linux": linux(capabilities=messages.Capability(add_capabilities=["NO_SUCH"]))}, '"NO_SUCH"'),
        ({"linux": linux(capabilities=messages.Capability(drop_capabilities=["NO_SUCH"]))}, '"NO_SUCH"'),
        ({"command": ["/no/such"]}, "stat /no/such: no such file or directory"),
        ({"command": ["nosuch"]}, "executable file not found in $PATH"),
        ({"command": ["/etc/passwd"]}, "permission denied"),
        ({"working_dir": "relative"}, "Cwd must be an absolute path"),
    ],
)
def test_checks_that_only_stricter_runtimes_make(make_client, change, text) -> None:
    client = make_client(personality=EVERY_CHECK)
    pod = client.run_pod()
    image = messages.ImageSpec(image="busybox:1.36", user_specified_image="busybox:1.36")
    good = altered(client.creation(pod), {"config": {"image": image}})
    failed = client.refused("CreateContainer", **altered(good, {"config": change}))
    assert text in failed.text
    assert_nothing_left(client)
    capable = linux(capabilities=messages.Capability(add_capabilities=["sys_admin", "CAP_NET_RAW", "ALL"]))
    client.CreateContainer(**altered(good, {"config": {"linux": capable}}))


@pytest.mark.parametrize("personality", ["reference", "containerd-1.6"])
def test_a_stopped_pod_takes_no_container(make_client, personality) -> None:
    client = make_client(personality=personality)
    pod = client.run_pod()
    client.StopPodSandbox(pod_sandbox_id=pod)
    failed = client.refused("CreateContainer", **client.creation(pod))
    assert pod in failed.text
    assert_nothing_left(client)


def test_containerd_2_1_creates_in_a_stopped_pod_and_fails_the_start(make_client) -> None:
    client = make_client(personality="containerd-2.1")
    assert client.engine.runtime.traits.create_in_stopped_sandbox is CreateInStoppedSandbox.ALLOW
    pod = client.run_pod()
    client.StopPodSandbox(pod_sandbox_id=pod)
    container = client.create(pod)
    failed = client.refused("StartContainer", container_id=container)
    assert failed.text == f'sandbox container "{pod}" is not running'
    assert client.status(container).reason == "StartError"


@pytest.mark.parametrize("what", ["StopPodSandbox", "RemovePodSandbox"])
def test_a_pod_that_goes_while_the_call_is_under_way_takes_no_container(client, pod, gate, what) -> None:
    gate.hold("CreateContainer", "reserved")
    call = client.begin("CreateContainer", **client.creation(pod))
    getattr(client, what)(pod_sandbox_id=pod)
    gate.release()
    assert not call.reply.ok
    assert pod in call.reply.text
    assert_nothing_left(client)


def test_mount_sources_that_are_missing_are_made(client, pod) -> None:
    client.create(pod, mounts=[messages.Mount(container_path="/a", host_path="/var/new/one")])
    assert client.engine.runtime.host_files.stat("/var/new/one").is_directory


def test_a_mount_source_with_dots_is_refused(client, pod) -> None:
    mounts = [messages.Mount(container_path="/a", host_path="/var/../../etc")]
    failed = client.refused("CreateContainer", **client.creation(pod, mounts=mounts))
    assert "/var/../../etc" in failed.text
    assert_nothing_left(client)


def test_a_memory_limit_brings_a_swap_limit(client, pod) -> None:
    resources = messages.LinuxContainerResources(memory_limit_in_bytes=1 << 26, cpu_shares=512)
    container = client.create(pod, linux=messages.LinuxContainerConfig(resources=resources))
    shown = client.status(container).resources.linux
    assert (shown.memory_limit_in_bytes, shown.memory_swap_limit_in_bytes, shown.cpu_shares) == (1 << 26, 1 << 26, 512)
    assert client.status(client.create(pod, "bare")).resources.HasField("linux")


@pytest.mark.parametrize("point", ["checked", "reserved", "before_commit"])
def test_a_client_that_goes_away_leaves_nothing(client, pod, gate, point) -> None:
    gate.hold("CreateContainer", point)
    call = client.begin("CreateContainer", **client.creation(pod))
    assert call.open
    assert client.containers() == []
    call.cancel()
    assert not call.open
    assert_nothing_left(client)
    gate.at.clear()
    client.create(pod)


@pytest.mark.parametrize("point", ["checked", "reserved", "before_commit"])
def test_a_call_that_a_rule_fails_leaves_nothing(client, pod, gate, point) -> None:
    gate.fail("CreateContainer", point, CriError(Reason.NO_ADDRESS_LEFT, id="x", cidr="y"))
    client.refused("CreateContainer", **client.creation(pod))
    assert_nothing_left(client)
