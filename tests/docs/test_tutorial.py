"""The tutorial's code: what a test of a CRI client looks like."""

# [client]
import grpc
import pytest

from fakecri.wire import messages as cri_api


class Agent:
    """What is under test here: it starts pods and restarts what failed."""

    def __init__(self, endpoint: str) -> None:
        self.channel = grpc.insecure_channel(endpoint)

    def call(self, method: str, request, reply):
        service = "ImageService" if "Image" in method else "RuntimeService"
        rpc = self.channel.unary_unary(
            f"/runtime.v1.{service}/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=reply.FromString,
        )
        return rpc(request, timeout=20)

    def run(self, name: str, image: str, *command: str) -> tuple[str, str]:
        """A pod with one started container; their ids."""
        pod = cri_api.PodSandboxConfig(metadata={"name": name, "namespace": "default", "uid": f"uid-{name}"})
        self.call("PullImage", cri_api.PullImageRequest(image={"image": image}), cri_api.PullImageResponse)
        ran = self.call("RunPodSandbox", cri_api.RunPodSandboxRequest(config=pod), cri_api.RunPodSandboxResponse)
        own_pids = {"security_context": {"namespace_options": {"pid": cri_api.CONTAINER}}}  # as a kubelet has it
        container = cri_api.ContainerConfig(
            metadata={"name": "main"}, image={"image": image}, command=command, linux=own_pids
        )
        request = cri_api.CreateContainerRequest(
            pod_sandbox_id=ran.pod_sandbox_id, config=container, sandbox_config=pod
        )
        created = self.call("CreateContainer", request, cri_api.CreateContainerResponse)
        self.start(created.container_id)
        return ran.pod_sandbox_id, created.container_id

    def start(self, container_id: str) -> None:
        request = cri_api.StartContainerRequest(container_id=container_id)
        self.call("StartContainer", request, cri_api.StartContainerResponse)

    def stop(self, container_id: str, grace_seconds: int) -> None:
        request = cri_api.StopContainerRequest(container_id=container_id, timeout=grace_seconds)
        self.call("StopContainer", request, cri_api.StopContainerResponse)


@pytest.fixture
def agent(cri):
    agent = Agent(cri.endpoint)
    yield agent
    agent.channel.close()


# [first]
def test_a_container_runs(cri, agent):
    sandbox_id, container_id = agent.run("web", "docker.io/library/nginx:latest")

    assert cri.sandboxes[sandbox_id].state == cri_api.SANDBOX_READY
    assert cri.containers[container_id].state == cri_api.CONTAINER_RUNNING
    assert [call.spec.name for call in cri.calls] == [
        "PullImage",
        "RunPodSandbox",
        "CreateContainer",
        "StartContainer",
    ]


# [time]
def test_a_deaf_container_is_killed_after_its_grace_period(cri, agent):
    _, container_id = agent.run("job", "docker.io/library/busybox:latest", "sleep", "3600")

    before = cri.clock.now
    agent.stop(container_id, grace_seconds=30)  # returns within milliseconds

    killed = cri.containers[container_id]
    assert (killed.state, killed.exit_code) == (cri_api.CONTAINER_EXITED, 137)
    assert cri.clock.now - before >= 30


def test_a_day_passes_at_once(cri, agent):
    _, container_id = agent.run("job", "docker.io/library/busybox:latest", "sleep", "86400")

    cri.clock.advance(86401)

    ended = cri.containers[container_id]
    assert (ended.state, ended.exit_code, ended.reason) == (cri_api.CONTAINER_EXITED, 0, "Completed")


# [refusal]
@pytest.mark.fakecri(personality="containerd-1.6")
def test_words_of_a_real_runtime(cri, agent):
    with pytest.raises(grpc.RpcError) as refused:
        agent.start("0123456789ab")

    assert refused.value.code() == grpc.StatusCode.NOT_FOUND
    assert refused.value.details() == 'an error occurred when try to find container "0123456789ab": not found'


# [end]
