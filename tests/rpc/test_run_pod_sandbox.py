"""RunPodSandbox: what it makes, what it refuses in which order, and that a refusal leaves nothing."""

from __future__ import annotations

import re

import pytest

from fakecri.base.reasons import Code, CriError, Reason
from fakecri.core.node import HandlerFault, Node, RuntimeHandler
from fakecri.core.traits import OnDuplicateName
from fakecri.personality.model import derive
from fakecri.personality.registry import PERSONALITIES
from fakecri.wire import messages

HANDLERS = (
    RuntimeHandler("runc"),
    RuntimeHandler("kata"),
    RuntimeHandler("broken", fault=HandlerFault.OCI_BINARY_MISSING, binary="/usr/bin/no-runc"),
    RuntimeHandler("noshim", fault=HandlerFault.SHIM_MISSING, binary="io.containerd.noshim.v2"),
)


def host_network(**more):
    options = messages.NamespaceOption(network=messages.NODE, **more)
    security = messages.LinuxSandboxSecurityContext(namespace_options=options)
    return messages.LinuxPodSandboxConfig(security_context=security)


def port(host_port, protocol=messages.TCP, host_ip=""):
    return messages.PortMapping(protocol=protocol, container_port=80, host_port=host_port, host_ip=host_ip)


def assert_nothing_left(client, pod="pod"):
    """No sandbox, no event, and the name, addresses and host ports are free."""
    runtime = client.engine.runtime
    assert client.pods() == []
    assert not runtime.events.records
    assert runtime.sandboxes.name_owner(f"{pod}_default_uid-{pod}_0") is None
    assert client.engine.open_calls == []


def test_a_pod_is_ready_when_the_call_returns(client) -> None:
    before = client.engine.clock.wall_ns
    pod = client.run_pod(labels={"app": "web"}, annotations={"note": "ä"})
    assert re.fullmatch(r"[0-9a-f]{64}", pod)
    status = client.pod_status(pod)
    assert status.state == messages.SANDBOX_READY
    assert (status.metadata.name, status.metadata.uid, status.metadata.namespace) == ("pod", "uid-pod", "default")
    assert (dict(status.labels), dict(status.annotations)) == ({"app": "web"}, {"note": "ä"})
    assert status.network.ip.startswith("127.88.")
    assert status.created_at >= before
    assert client.pods() == [pod]


def test_ids_follow_the_seed_and_nothing_else(make_client) -> None:
    first, same, other = (make_client(seed=seed).run_pod() for seed in (7, 7, 8))
    assert first == same
    assert first != other


@pytest.mark.parametrize("fields", [{}, {"config": messages.PodSandboxConfig()}])
def test_a_pod_without_metadata_is_refused(client, fields) -> None:
    failed = client.refused("RunPodSandbox", **fields)
    assert (failed.code, failed.text) == (Code.UNKNOWN, "sandbox config must include metadata")
    assert_nothing_left(client)


def test_empty_metadata_is_taken_as_containerd_does(client) -> None:
    config = messages.PodSandboxConfig(metadata=messages.PodSandboxMetadata())
    pod = client.RunPodSandbox(config=config).pod_sandbox_id
    assert client.pods() == [pod]


@pytest.mark.parametrize(
    ("missing", "reason"),
    [
        ("name", Reason.SANDBOX_NAME_EMPTY),
        ("namespace", Reason.SANDBOX_NAMESPACE_EMPTY),
        ("uid", Reason.SANDBOX_UID_EMPTY),
    ],
)
def test_a_runtime_that_checks_names_refuses_empty_ones(make_client, missing, reason) -> None:
    order = ("config", "metadata", "name", "namespace", "uid", "name_free", "handler", "log_directory")
    strict = derive(
        PERSONALITIES["reference"], name="strict", summary="", behaviour={"check_orders": {"RunPodSandbox": order}}
    )
    client = make_client(personality=strict)
    config = client.pod_config()
    config.metadata.ClearField(missing)
    failed = client.refused("RunPodSandbox", config=config)
    assert failed.text == strict.forms[reason, None].text
    assert client.pods() == []
    config = client.pod_config(log_directory="relative/path")
    failed = client.refused("RunPodSandbox", config=config)
    assert 'log directory "relative/path" of sandbox' in failed.text


def test_a_name_is_taken_until_the_pod_is_removed(client) -> None:
    pod = client.run_pod()
    name = "pod_default_uid-pod_0"
    text = f'failed to reserve sandbox name "{name}": name "{name}" is reserved for "{pod}"'
    failed = client.refused("RunPodSandbox", config=client.pod_config())
    assert (failed.code, failed.text) == (Code.FAILED_PRECONDITION, text)
    client.StopPodSandbox(pod_sandbox_id=pod)
    assert client.refused("RunPodSandbox", config=client.pod_config()).text == text
    other = client.run_pod(attempt=1)
    client.RemovePodSandbox(pod_sandbox_id=pod)
    assert client.run_pod() not in (pod, other)


def test_the_older_containerd_gives_the_same_refusal_another_code(make_client) -> None:
    client = make_client(personality="containerd-1.6")
    client.run_pod()
    assert client.refused("RunPodSandbox", config=client.pod_config()).code == Code.UNKNOWN


def test_a_runtime_may_answer_a_taken_name_with_its_holder(make_client, make_gate) -> None:
    sharing = derive(
        PERSONALITIES["reference"],
        name="sharing",
        summary="",
        traits={"duplicate_name": OnDuplicateName.RETURN_EXISTING},
    )
    client = make_client(personality=sharing)
    gate = make_gate(client.engine)
    gate.hold("RunPodSandbox", "before_commit")
    first = client.begin("RunPodSandbox", config=client.pod_config())
    gate.at.clear()
    second = client.begin("RunPodSandbox", config=client.pod_config())
    assert first.open
    assert second.open  # it waits for the name's holder
    gate.release()
    assert first.answer.pod_sandbox_id == second.answer.pod_sandbox_id == client.pods()[0]
    client.StopPodSandbox(pod_sandbox_id=client.pods()[0])
    assert client.run_pod() == first.answer.pod_sandbox_id


def test_a_waiting_duplicate_takes_the_name_when_its_holder_fails(make_client, make_gate) -> None:
    sharing = derive(
        PERSONALITIES["reference"],
        name="sharing",
        summary="",
        traits={"duplicate_name": OnDuplicateName.RETURN_EXISTING},
    )
    client = make_client(personality=sharing)
    gate = make_gate(client.engine)
    gate.hold("RunPodSandbox", "reserved")
    first = client.begin("RunPodSandbox", config=client.pod_config())
    gate.at.clear()
    second = client.begin("RunPodSandbox", config=client.pod_config())
    first.cancel()
    assert client.pods() == [second.answer.pod_sandbox_id]


def test_two_calls_for_one_name_at_once_make_one_pod(client, gate) -> None:
    gate.hold("RunPodSandbox", "checked")
    first = client.begin("RunPodSandbox", config=client.pod_config())
    gate.at.clear()
    second = client.begin("RunPodSandbox", config=client.pod_config())
    gate.release()
    assert second.answer.pod_sandbox_id == client.pods()[0]
    assert first.reply.code == Code.FAILED_PRECONDITION
    assert len(client.pods()) == 1


def test_runtime_handlers(make_client) -> None:
    client = make_client(node=Node(runtime_handlers=HANDLERS))
    for handler in ("", "runc", "kata"):
        pod = client.run_pod(f"pod-{handler}", handler=handler)
        assert client.pod_status(pod).runtime_handler == handler
    failed = client.refused("RunPodSandbox", config=client.pod_config(), runtime_handler="x")
    assert failed.code == Code.UNKNOWN
    assert re.fullmatch(
        r'unable to get OCI runtime for sandbox "[0-9a-f]{64}": no runtime for "x" is configured', failed.text
    )
    failed = client.refused("RunPodSandbox", config=client.pod_config(), runtime_handler="broken")
    assert failed.code == Code.UNKNOWN
    assert "OCI runtime create failed" in failed.text
    assert "/usr/bin/no-runc" in failed.text
    failed = client.refused("RunPodSandbox", config=client.pod_config(), runtime_handler="noshim")
    assert "failed to start shim" in failed.text
    assert "io.containerd.noshim.v2" in failed.text
    assert len(client.pods()) == 3
    assert client.run_pod() in client.pods()  # no name is held by those that failed


@pytest.mark.parametrize(
    ("config", "part"),
    [
        ({"hostname": "h" * 65}, "sethostname: invalid argument"),
        (
            {"linux": messages.LinuxPodSandboxConfig(sysctls={"kernel.hostname": "x"})},
            'sysctl "kernel.hostname" is not',
        ),
        ({"linux": messages.LinuxPodSandboxConfig(sysctls={"vm.swappiness": "1"})}, 'sysctl "vm.swappiness" is not'),
    ],
)
def test_what_the_kernel_refuses(client, config, part) -> None:
    failed = client.refused("RunPodSandbox", config=client.pod_config(**config))
    assert failed.code == Code.UNKNOWN
    assert part in failed.text
    assert_nothing_left(client)


def test_namespaced_sysctls_and_long_hostnames_within_limits_are_taken(client) -> None:
    sysctls = {"net.ipv4.ip_forward": "1", "net/core/somaxconn": "1", "kernel.shm_rmid_forced": "1"}
    client.run_pod(hostname="h" * 64, linux=messages.LinuxPodSandboxConfig(sysctls=sysctls))


def test_a_relative_log_directory_is_taken_as_containerd_does(client) -> None:
    client.run_pod(log_directory="relative/path")


@pytest.mark.parametrize(
    ("options", "detail"),
    [
        ({"uids": 0, "gids": 1}, "exactly one uid and one gid mapping"),
        ({"uids": 2, "gids": 2}, "exactly one uid and one gid mapping"),
        ({"differ": True}, "mappings differ"),
        ({"length": 0}, "length is 0"),
        ({"network": messages.NODE}, "node's namespaces"),
    ],
)
def test_user_namespaces_that_cannot_be(client, options, detail) -> None:
    def mapping(host_id, length=65536):
        return messages.IDMapping(host_id=host_id, container_id=0, length=options.get("length", length))

    namespace = messages.UserNamespace(
        mode=messages.POD,
        uids=[mapping(65536)] * options.get("uids", 1),
        gids=[mapping(1 if options.get("differ") else 65536)] * options.get("gids", 1),
    )
    chosen = messages.NamespaceOption(userns_options=namespace, network=options.get("network", messages.POD))
    security = messages.LinuxSandboxSecurityContext(namespace_options=chosen)
    config = client.pod_config(linux=messages.LinuxPodSandboxConfig(security_context=security))
    failed = client.refused("RunPodSandbox", config=config)
    assert detail in failed.text
    assert_nothing_left(client)


def test_without_a_network_nothing_is_left(client) -> None:
    client.engine.runtime.conditions["NetworkReady"] = (False, "NetworkPluginNotReady", "no CNI")
    failed = client.refused("RunPodSandbox", config=client.pod_config())
    assert failed.code == Code.UNKNOWN
    assert re.fullmatch(r'failed to setup network for sandbox "[0-9a-f]{64}": cni plugin not initialized', failed.text)
    assert_nothing_left(client)
    pod = client.run_pod("host", linux=host_network())
    assert client.pod_status(pod).network.ip == ""
    assert client.pod_status(pod).HasField("network")


def test_the_older_containerd_leaves_a_pod_whose_network_failed(make_client) -> None:
    client = make_client(personality="containerd-1.6")
    client.engine.runtime.conditions["NetworkReady"] = (False, "NetworkPluginNotReady", "no CNI")
    failed = client.refused("RunPodSandbox", config=client.pod_config())
    (pod,) = client.pods()
    assert pod in failed.text
    assert client.pod_status(pod).state == messages.SANDBOX_NOTREADY
    assert client.refused("RunPodSandbox", config=client.pod_config()).text.startswith("failed to reserve sandbox name")
    client.RemovePodSandbox(pod_sandbox_id=pod)
    client.engine.runtime.conditions["NetworkReady"] = (True, "", "")
    client.run_pod()


def test_addresses_run_out_and_come_back(make_client) -> None:
    client = make_client(node=Node(pod_cidrs=("10.9.0.0/30",)))
    pods = []
    for number in range(8):
        config = client.pod_config(f"pod-{number}")
        call = client.begin("RunPodSandbox", config=config)
        if not call.reply.ok:
            break
        pods.append(call.answer.pod_sandbox_id)
    assert 1 <= len(pods) <= 4
    assert "no IP addresses available in range set" in call.reply.text
    assert "10.9.0.0" in call.reply.text
    assert len({client.pod_status(pod).network.ip for pod in pods}) == len(pods)
    client.StopPodSandbox(pod_sandbox_id=pods[0])
    assert client.run_pod("again") in client.pods()


def test_a_host_port_belongs_to_one_pod_at_a_time(client) -> None:
    pod = client.run_pod("first", port_mappings=[port(8080), port(0)])
    failed = client.refused("RunPodSandbox", config=client.pod_config("second", port_mappings=[port(8080)]))
    assert "host port 8080/TCP is already in use" in failed.text
    assert client.pods() == [pod]
    client.run_pod("udp", port_mappings=[port(8080, messages.UDP)])
    client.StopPodSandbox(pod_sandbox_id=pod)
    client.run_pod("second", port_mappings=[port(8080)])


def test_a_failed_host_port_gives_the_address_back(make_client) -> None:
    client = make_client(node=Node(pod_cidrs=("10.9.0.0/29",)))
    client.run_pod("first", port_mappings=[port(8080)])
    for number in range(20):
        failed = client.refused("RunPodSandbox", config=client.pod_config(f"p{number}", port_mappings=[port(8080)]))
        assert "already in use" in failed.text
    client.run_pod("last")


def test_dual_stack_pods_have_an_address_of_each_family(make_client) -> None:
    client = make_client(node=Node(pod_cidrs=("10.9.0.0/24", "fd00:9::/64")))
    network = client.pod_status(client.run_pod()).network
    assert network.ip.startswith("10.9.0.")
    assert [extra.ip[:6] for extra in network.additional_ips] == ["fd00:9"]


@pytest.mark.parametrize("point", ["checked", "reserved", "before_commit"])
def test_a_client_that_goes_away_leaves_nothing(client, gate, point) -> None:
    gate.hold("RunPodSandbox", point)
    call = client.begin("RunPodSandbox", config=client.pod_config(port_mappings=[port(8080)]))
    assert call.open
    assert client.pods() == []
    assert client.refused("PodSandboxStatus", pod_sandbox_id="x").code == Code.NOT_FOUND
    call.cancel()
    assert not call.open
    assert_nothing_left(client)
    gate.at.clear()
    client.run_pod(port_mappings=[port(8080)])


@pytest.mark.parametrize("point", ["checked", "reserved", "before_commit"])
def test_a_call_that_a_rule_fails_leaves_nothing(client, gate, point) -> None:
    gate.fail("RunPodSandbox", point, CriError(Reason.SHUTTING_DOWN))
    failed = client.refused("RunPodSandbox", config=client.pod_config())
    assert failed.code == Code.UNAVAILABLE
    assert_nothing_left(client)
