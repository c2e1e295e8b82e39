"""Verbose info: what crictl inspect prints and node agents parse out of it."""

from __future__ import annotations

import json

import pytest

from fakecri.core.node import CgroupDriver, HandlerFault, Node, RuntimeHandler
from fakecri.kernel.capabilities import CAPABILITIES
from fakecri.personality.model import derive
from fakecri.personality.registry import PERSONALITIES
from fakecri.wire import messages


def container_document(client, container):
    reply = client.ContainerStatus(container_id=container, verbose=True)
    return json.loads(reply.info["info"])


def sandbox_document(client, pod):
    return json.loads(client.PodSandboxStatus(pod_sandbox_id=pod, verbose=True).info["info"])


def secured(**context):
    options = {"namespace_options": messages.NamespaceOption(pid=messages.CONTAINER), **context}
    return messages.LinuxContainerConfig(security_context=messages.LinuxContainerSecurityContext(**options))


def test_nothing_without_verbose(client) -> None:
    pod = client.run_pod()
    container = client.run(pod)
    assert not client.ContainerStatus(container_id=container).info
    assert not client.PodSandboxStatus(pod_sandbox_id=pod).info
    assert not client.Status().info


# -- containers --------------------------------------------------------------------------------------------------------
def test_identity_of_a_container(client) -> None:
    pod = client.run_pod()
    container = client.create(pod, "main")
    before = container_document(client, container)
    client.StartContainer(container_id=container)
    after = container_document(client, container)
    client.StopContainer(container_id=container)
    stopped = container_document(client, container)
    assert before["pid"] == 0 == stopped["pid"]
    assert after["pid"] >= 5_000_000
    assert after["sandboxID"] == pod
    assert after["snapshotKey"] == container
    assert after["runtimeType"] == "io.containerd.runc.v2"
    assert (after["removing"], after["restored"]) == (False, False)


def test_config_is_the_clients_in_go_json(client) -> None:
    container = client.create(
        client.run_pod(),
        "main",
        command=["sh", "-c", "a <b> & c"],
        envs=[messages.KeyValue(key="K", value=b"v")],
        labels={"z": "1", "a": "2"},
        linux=secured(capabilities=messages.Capability(add_capabilities=["NET_ADMIN"])),
        mounts=[messages.Mount(container_path="/m", host_path="/h", propagation=messages.PROPAGATION_BIDIRECTIONAL)],
    )
    reply = client.ContainerStatus(container_id=container, verbose=True)
    assert "a \\u003cb\\u003e \\u0026 c" in reply.info["info"], "Go escapes HTML"
    config = json.loads(reply.info["info"])["config"]
    assert config["metadata"] == {"name": "main"}
    assert config["mounts"] == [{"container_path": "/m", "host_path": "/h", "propagation": 2}]
    assert config["envs"] == [{"key": "K", "value": "dg=="}], "bytes are base64 in Go"
    assert list(config["labels"]) == ["a", "z"]
    assert "working_dir" not in config
    assert config["linux"]["security_context"]["namespace_options"] == {"pid": 1}


def test_spec_process(client) -> None:
    container = client.create(
        client.run_pod(),
        "main",
        command=["sleep"],
        args=["5"],
        working_dir="/tmp",
        tty=True,
        envs=[messages.KeyValue(key="K", value=b"v\xff")],
        linux=secured(
            run_as_user=messages.Int64Value(value=1000),
            run_as_group=messages.Int64Value(value=2000),
            supplemental_groups=[3000],
            no_new_privs=True,
            capabilities=messages.Capability(
                add_capabilities=["NET_ADMIN"], drop_capabilities=["ALL"], add_ambient_capabilities=["CAP_CHOWN"]
            ),
        ),
    )
    process = container_document(client, container)["runtimeSpec"]["process"]
    assert process["args"] == ["sleep", "5"]
    assert process["cwd"] == "/tmp"
    assert process["terminal"] is True
    assert "K=v\ufffd" in process["env"]
    assert "TERM=xterm" in process["env"]
    assert process["user"] == {"uid": 1000, "gid": 2000, "additionalGids": [2000, 3000]}
    assert process["noNewPrivileges"] is True
    assert process["capabilities"]["effective"] == ["CAP_NET_ADMIN"]
    assert process["capabilities"]["ambient"] == ["CAP_CHOWN"]


@pytest.mark.parametrize(
    ("context", "held", "missing"),
    [
        ({}, {"CAP_CHOWN", "CAP_KILL"}, {"CAP_SYS_ADMIN"}),
        ({"privileged": True}, {f"CAP_{name}" for name in CAPABILITIES}, set()),
        ({"capabilities": messages.Capability(add_capabilities=["ALL"])}, {"CAP_SYS_ADMIN"}, set()),
        (
            {"capabilities": messages.Capability(add_capabilities=["ALL"], drop_capabilities=["sys_admin"])},
            {"CAP_BPF"},
            {"CAP_SYS_ADMIN"},
        ),
        ({"capabilities": messages.Capability(drop_capabilities=["CHOWN"])}, {"CAP_KILL"}, {"CAP_CHOWN"}),
        ({"capabilities": messages.Capability(drop_capabilities=["ALL"])}, set(), {"CAP_CHOWN", "CAP_KILL"}),
    ],
)
def test_capabilities(client, context, held, missing) -> None:
    container = client.create(client.run_pod(), linux=secured(**context))
    sets = container_document(client, container)["runtimeSpec"]["process"]["capabilities"]
    for name in ("bounding", "effective", "permitted"):
        assert held <= set(sets[name])
        assert not missing & set(sets[name])


def test_spec_mounts_and_root(client) -> None:
    mounts = [
        messages.Mount(container_path="/ro", host_path="/h1", readonly=True),
        messages.Mount(
            container_path="/rro",
            host_path="/h2",
            recursive_read_only=True,
            propagation=messages.PROPAGATION_HOST_TO_CONTAINER,
            uidMappings=[messages.IDMapping(host_id=7, container_id=0, length=1)],
        ),
    ]
    container = client.create(client.run_pod(), linux=secured(readonly_rootfs=True), mounts=mounts)
    spec = container_document(client, container)["runtimeSpec"]
    shown = {mount["destination"]: mount for mount in spec["mounts"]}
    assert shown["/ro"]["options"] == ["rbind", "rprivate", "ro"]
    assert shown["/ro"]["source"] == "/h1"
    assert shown["/rro"]["options"] == ["rbind", "rslave", "rro"]
    assert shown["/rro"]["uidMappings"] == [{"containerID": 0, "hostID": 7, "size": 1}]
    assert shown["/proc"]["type"] == "proc"
    assert spec["root"] == {"path": "rootfs", "readonly": True}


@pytest.mark.parametrize(
    ("driver", "parent", "expected"),
    [
        (CgroupDriver.CGROUPFS, "/kubepods/pod1", "/kubepods/pod1/{id}"),
        (CgroupDriver.CGROUPFS, "", "/k8s.io/{id}"),
        (CgroupDriver.SYSTEMD, "kubepods-pod1.slice", "kubepods-pod1.slice:cri-containerd:{id}"),
        (CgroupDriver.SYSTEMD, "", "system.slice:cri-containerd:{id}"),
    ],
)
def test_spec_cgroup_and_resources(make_client, driver, parent, expected) -> None:
    client = make_client(node=Node(cgroup_driver=driver))
    resources = messages.LinuxContainerResources(
        cpu_quota=5, cpu_period=10, cpu_shares=3, memory_limit_in_bytes=1 << 26, cpuset_cpus="0-1", oom_score_adj=9
    )
    pod = client.run_pod(linux=messages.LinuxPodSandboxConfig(cgroup_parent=parent))
    container = client.create(pod, linux=messages.LinuxContainerConfig(resources=resources))
    spec = container_document(client, container)["runtimeSpec"]
    assert spec["linux"]["cgroupsPath"] == expected.format(id=container)
    assert spec["linux"]["resources"]["cpu"] == {"shares": 3, "quota": 5, "period": 10, "cpus": "0-1"}
    assert spec["linux"]["resources"]["memory"] == {"limit": 1 << 26, "swap": 1 << 26}
    assert spec["process"]["oomScoreAdj"] == 9
    client.UpdateContainerResources(container_id=container, linux=messages.LinuxContainerResources(cpu_shares=4))
    assert container_document(client, container)["runtimeSpec"]["linux"]["resources"]["cpu"]["shares"] == 4


def test_spec_namespaces_join_the_sandbox(client) -> None:
    pod = client.run_pod()
    pid = sandbox_document(client, pod)["pid"]
    own = client.run(pod, "own", linux=secured())
    options = messages.NamespaceOption(pid=messages.NODE, network=messages.NODE, ipc=messages.NODE)
    host = client.run(pod, "host", linux=secured(namespace_options=options))

    def namespaces(container):
        found = container_document(client, container)["runtimeSpec"]["linux"]["namespaces"]
        return {one["type"]: one.get("path", "") for one in found}

    assert namespaces(own) == {
        "pid": "",
        "ipc": f"/proc/{pid}/ns/ipc",
        "uts": f"/proc/{pid}/ns/uts",
        "network": f"/proc/{pid}/ns/net",
        "mount": "",
    }
    assert namespaces(host) == {"mount": ""}


def test_spec_profiles_and_annotations(client) -> None:
    profile = messages.SecurityProfile
    pod = client.run_pod("web", namespace="shop")
    container = client.create(
        pod,
        annotations={"own": "x"},
        linux=secured(
            apparmor=profile(profile_type=profile.Localhost, localhost_ref="mine"),
            seccomp=profile(profile_type=profile.RuntimeDefault),
            masked_paths=["/proc/kcore"],
        ),
    )
    spec = container_document(client, container)["runtimeSpec"]
    assert spec["process"]["apparmorProfile"] == "mine"
    assert spec["linux"]["seccomp"]["defaultAction"] == "SCMP_ACT_ERRNO"
    assert spec["linux"]["maskedPaths"] == ["/proc/kcore"]
    assert spec["annotations"]["own"] == "x"
    assert spec["annotations"]["io.kubernetes.cri.sandbox-namespace"] == "shop"
    assert spec["annotations"]["io.kubernetes.cri.sandbox-id"] == pod
    unconfined = client.create(
        pod,
        "unconfined",
        linux=secured(seccomp=profile(profile_type=profile.Unconfined), apparmor_profile="unconfined"),
    )
    spec = container_document(client, unconfined)["runtimeSpec"]
    assert "seccomp" not in spec["linux"]
    assert "apparmorProfile" not in spec["process"]


# -- sandboxes ---------------------------------------------------------------------------------------------------------
def test_sandbox_document_over_its_life(client) -> None:
    pod = client.run_pod(hostname="web-1", linux=messages.LinuxPodSandboxConfig(sysctls={"net.core.somaxconn": "9"}))
    ip = client.pod_status(pod).network.ip
    before = sandbox_document(client, pod)
    assert (before["processStatus"], before["netNamespaceClosed"]) == ("running", False)
    assert before["cniResult"]["Interfaces"]["eth0"]["IPConfigs"] == [{"IP": ip, "Gateway": "127.88.0.1"}]
    assert before["sandboxMetadata"]["IP"] == ip
    assert before["config"]["hostname"] == "web-1"
    assert before["runtimeSpec"]["hostname"] == "web-1"
    assert before["runtimeSpec"]["linux"]["sysctl"] == {"net.core.somaxconn": "9"}
    network = next(one for one in before["runtimeSpec"]["linux"]["namespaces"] if one["type"] == "network")
    assert network["path"] == before["sandboxMetadata"]["NetNSPath"]
    client.StopPodSandbox(pod_sandbox_id=pod)
    after = sandbox_document(client, pod)
    assert (after["pid"], after["processStatus"], after["netNamespaceClosed"]) == (0, "deleted", True)


def test_host_network_has_no_cni_result(client) -> None:
    options = messages.NamespaceOption(network=messages.NODE)
    context = messages.LinuxSandboxSecurityContext(namespace_options=options)
    pod = client.run_pod(linux=messages.LinuxPodSandboxConfig(security_context=context))
    assert sandbox_document(client, pod)["cniResult"] is None


def test_updated_pod_resources_are_shown(client) -> None:
    pod = client.run_pod()
    assert not {"overhead", "resources"} & set(sandbox_document(client, pod))
    client.UpdatePodSandboxResources(
        pod_sandbox_id=pod,
        overhead=messages.LinuxContainerResources(cpu_shares=2),
        resources=messages.LinuxContainerResources(cpu_shares=3),
    )
    document = sandbox_document(client, pod)
    assert (document["overhead"], document["resources"]) == ({"cpu_shares": 2}, {"cpu_shares": 3})


# -- the runtime, and other shapes -------------------------------------------------------------------------------------
def test_status_info(make_client) -> None:
    handlers = (RuntimeHandler("runc"), RuntimeHandler("broken", fault=HandlerFault.SHIM_MISSING, binary="x.v1"))
    client = make_client(node=Node(runtime_handlers=handlers, cgroup_driver=CgroupDriver.SYSTEMD))
    info = client.Status(verbose=True).info
    config = json.loads(info["config"])
    assert config["containerd"]["defaultRuntimeName"] == "runc"
    assert set(config["containerd"]["runtimes"]) == {"runc", "broken"}
    assert config["containerd"]["runtimes"]["runc"]["options"] == {"SystemdCgroup": True}
    assert json.loads(info["golang"]).startswith("go")
    assert info["lastCNILoadStatus"] == "OK"
    assert len(json.loads(info["cniconfig"])["Networks"]) == 2
    client.engine.runtime.conditions["NetworkReady"] = (False, "NetworkPluginNotReady", "cni plugin not initialized")
    info = client.Status(verbose=True).info
    assert info["lastCNILoadStatus.default"] == "cni plugin not initialized"
    assert len(json.loads(info["cniconfig"])["Networks"]) == 1


def test_keys_are_the_personalitys(make_client) -> None:
    keys = {"ContainerStatus": ("pid", "privileged"), "PodSandboxStatus": ("runtimeSpec",), "Status": ("config",)}
    other = derive(PERSONALITIES["reference"], name="other", summary="fewer keys", behaviour={"info_keys": keys})
    client = make_client(personality=other)
    pod = client.run_pod()
    assert list(container_document(client, client.run(pod))) == ["pid", "privileged"]
    assert list(sandbox_document(client, pod)) == ["runtimeSpec"]
    assert list(client.Status(verbose=True).info) == ["config"]


def test_no_keys_no_info(make_client) -> None:
    keys = {"ContainerStatus": (), "PodSandboxStatus": (), "Status": ()}
    other = derive(PERSONALITIES["reference"], name="other", summary="no info", behaviour={"info_keys": keys})
    client = make_client(personality=other)
    pod = client.run_pod()
    assert not client.ContainerStatus(container_id=client.run(pod), verbose=True).info
    assert not client.PodSandboxStatus(pod_sandbox_id=pod, verbose=True).info
    assert not client.Status(verbose=True).info
