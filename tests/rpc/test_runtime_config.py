"""Version, Status, RuntimeConfig, UpdateRuntimeConfig."""

from __future__ import annotations

import pytest

from fakecri.base.reasons import Code
from fakecri.core.node import CgroupDriver, Node, RuntimeHandler
from fakecri.wire import messages


def set_cidr(client, text):
    network = messages.NetworkConfig(pod_cidr=text)
    return client.UpdateRuntimeConfig(runtime_config=messages.RuntimeConfig(network_config=network))


def addresses(client, pod):
    network = client.pod_status(pod).network
    return [network.ip, *(extra.ip for extra in network.additional_ips)]


@pytest.mark.parametrize("asked", ["", "0.1.0", "v1", "nonsense"])
@pytest.mark.parametrize("api", ["v1", "v1alpha2"])
def test_version(client, asked, api) -> None:
    answer = client.as_api(api).Version(version=asked)
    assert (answer.version, answer.runtime_api_version) == ("0.1.0", api)
    assert (answer.runtime_name, answer.runtime_version) == ("fakecri", "0.1.0")


@pytest.mark.parametrize(
    ("personality", "name", "version"),
    [("containerd-1.6", "containerd", "1.6.20~ds1"), ("containerd-2.1", "containerd", "2.1.9")],
)
def test_another_personality_has_another_name(make_client, personality, name, version) -> None:
    answer = make_client(personality=personality).Version()
    assert (answer.runtime_name, answer.runtime_version) == (name, version)


def test_conditions_are_true_until_somebody_sets_them(client) -> None:
    conditions = client.Status().status.conditions
    assert [(one.type, one.status, one.reason, one.message) for one in conditions] == [
        ("RuntimeReady", True, "", ""),
        ("NetworkReady", True, "", ""),
    ]
    client.engine.runtime.conditions["NetworkReady"] = (False, "NetworkPluginNotReady", "no CNI")
    network = client.Status().status.conditions[1]
    assert (network.status, network.reason, network.message) == (False, "NetworkPluginNotReady", "no CNI")


def test_personalities_have_conditions_of_their_own(make_client) -> None:
    conditions = make_client(personality="containerd-2.1").Status().status.conditions
    assert [one.type for one in conditions][2:] == ["ContainerdHasNoDeprecationWarnings"]


def test_handlers_and_features(make_client) -> None:
    plain = RuntimeHandler("kata", recursive_read_only_mounts=False, user_namespaces=False)
    client = make_client(node=Node(runtime_handlers=(RuntimeHandler("runc"), plain)))
    response = client.Status()
    shown = {
        handler.name: (handler.features.recursive_read_only_mounts, handler.features.user_namespaces)
        for handler in response.runtime_handlers
    }
    assert shown == {"": (True, True), "runc": (True, True), "kata": (False, False)}
    assert response.features.supplemental_groups_policy
    old = make_client(personality="containerd-1.6").Status()
    assert not old.runtime_handlers
    assert not old.HasField("features")


def test_info_comes_only_when_it_is_asked_for(client) -> None:
    assert not client.Status().info
    assert client.Status(verbose=True).info


@pytest.mark.parametrize(
    ("driver", "value"), [(CgroupDriver.CGROUPFS, messages.CGROUPFS), (CgroupDriver.SYSTEMD, messages.SYSTEMD)]
)
def test_the_cgroup_driver(make_client, driver, value) -> None:
    response = make_client(node=Node(cgroup_driver=driver)).RuntimeConfig()
    assert response.HasField("linux")
    assert response.linux.cgroup_driver == value


def test_a_new_pod_cidr_moves_the_pool_and_leaves_pods_alone(client) -> None:
    first = client.run_pod("first")
    before = addresses(client, first)
    set_cidr(client, "10.7.0.0/24")
    second = client.run_pod("second")
    assert addresses(client, first) == before
    assert addresses(client, second)[0].startswith("10.7.0.")
    client.RemovePodSandbox(pod_sandbox_id=first)  # from a pool that is no more
    client.RemovePodSandbox(pod_sandbox_id=second)
    assert addresses(client, client.run_pod("third"))[0].startswith("10.7.0.")


@pytest.mark.parametrize("text", ["10.7.0.0/24,fd00:7::/64", "10.7.0.0/24, fd00:7::/64"])
def test_two_cidrs_make_pods_dual_stack(client, text) -> None:
    set_cidr(client, text)
    first, second = addresses(client, client.run_pod())
    assert first.startswith("10.7.0.")
    assert second.startswith("fd00:7:")


@pytest.mark.parametrize("text", ["nonsense", "10.7.0.0/99", "10.7.0.0/24,", "300.0.0.0/8", "10.7.0.0/24,nonsense"])
def test_what_is_no_cidr_is_refused_and_the_pool_stays(client, text) -> None:
    failed = client.refused(
        "UpdateRuntimeConfig",
        runtime_config=messages.RuntimeConfig(network_config=messages.NetworkConfig(pod_cidr=text)),
    )
    assert (failed.code, failed.text) == (Code.UNKNOWN, f"invalid CIDR address: {text}")
    assert addresses(client, client.run_pod())[0].startswith("127.88.")


def test_an_empty_update_changes_nothing(client) -> None:
    client.UpdateRuntimeConfig()
    set_cidr(client, "")
    assert addresses(client, client.run_pod())[0].startswith("127.88.")


def test_an_update_passes_its_points(client, gate) -> None:
    config = messages.RuntimeConfig(network_config=messages.NetworkConfig(pod_cidr="10.7.0.0/24"))
    for point in ("checked", "before_commit"):
        gate.at.clear()
        gate.hold("UpdateRuntimeConfig", point)
        call = client.begin("UpdateRuntimeConfig", runtime_config=config)
        assert call.open
        call.cancel()
    gate.at.clear()
    assert addresses(client, client.run_pod())[0].startswith("127.88.")
