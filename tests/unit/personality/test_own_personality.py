"""A runtime that exists only here, written from data alone: five RPCs answer otherwise, no line of core does."""

from __future__ import annotations

import pytest

from fakecri.base.reasons import Code, Reason
from fakecri.core.rpc.container_create import DEFAULT_ORDER
from fakecri.core.states import ContainerInput, ContainerState, EventType, Move
from fakecri.core.traits import ImageListFilter, OnUnknown
from fakecri.engine import CallFailed
from fakecri.personality.model import Form, derive
from fakecri.personality.registry import PERSONALITIES
from fakecri.wire import messages

SHIPYARD = derive(
    PERSONALITIES["reference"],
    name="shipyard",
    summary="a runtime that nobody has built",
    runtime_name="fakecri",
    forms={(Reason.SANDBOX_NOT_FOUND, "PodSandboxStatus"): Form(Code.OUT_OF_RANGE, "no berth {id:.4}")},
    wrappers={(Reason.SANDBOX_NOT_FOUND, "PodSandboxStatus"): "harbour: {cause}"},
    traits={
        "stop_unknown_container": OnUnknown.NOT_FOUND,
        "image_list_filter": ImageListFilter.IGNORED,
    },
    container_rows={
        (ContainerState.CREATED, ContainerInput.STOP): Move(ContainerState.EXITED, emits=(EventType.STOPPED,)),
    },
    behaviour={
        "check_orders": {"CreateContainer": ("metadata", *(name for name in DEFAULT_ORDER if name != "metadata"))},
        "strategies": {"events": "backlog"},
    },
)
UNKNOWN = "f" * 64
CHANGED = {"PodSandboxStatus", "StopContainer", "ListImages", "CreateContainer", "GetContainerEvents"}


def refusal(engine, method, message):
    with pytest.raises(CallFailed) as caught:
        engine.call(method, message)
    return caught.value.code, caught.value.text


@pytest.fixture
def engine(build):
    return build(SHIPYARD)


def test_its_own_words(engine):
    assert refusal(engine, "PodSandboxStatus", messages.PodSandboxStatusRequest(pod_sandbox_id=UNKNOWN)) == (
        Code.OUT_OF_RANGE,
        "harbour: no berth ffff",
    )


def test_a_trait_refuses_to_stop_what_is_not_there(engine):
    code, text = refusal(engine, "StopContainer", messages.StopContainerRequest(container_id=UNKNOWN))
    assert code is Code.NOT_FOUND
    assert UNKNOWN in text


def test_a_trait_ignores_the_filter_of_images(engine):
    wanted = messages.ListImagesRequest(filter={"image": {"image": "example.com/no/such:v1"}})
    assert len(engine.call("ListImages", wanted).images) == len(engine.call("ListImages").images) > 1


def test_the_metadata_are_looked_at_before_the_sandbox(engine, build):
    request = messages.CreateContainerRequest(pod_sandbox_id=UNKNOWN, config={"tty": True})
    assert "metadata" in refusal(engine, "CreateContainer", request)[1]
    assert UNKNOWN in refusal(build(PERSONALITIES["reference"]), "CreateContainer", request)[1]


def test_a_row_ends_a_created_container_at_its_stop(engine, play):
    player = play(engine)
    container = player.create("c", player.pod("p"))
    engine.call("StopContainer", messages.StopContainerRequest(container_id=container))
    status = engine.call("ContainerStatus", messages.ContainerStatusRequest(container_id=container)).status
    assert status.state == messages.CONTAINER_EXITED


def test_a_strategy_keeps_events_for_the_first_subscriber(engine, play, build):
    other = build(PERSONALITIES["reference"])
    for one in (engine, other):
        play(one).pod("p")
    assert [event.container_event_type for event in engine.stream("GetContainerEvents")] == [
        messages.CONTAINER_CREATED_EVENT,
        messages.CONTAINER_STARTED_EVENT,
    ]
    assert list(other.stream("GetContainerEvents")) == []


def test_these_rpcs_and_no_others_answer_otherwise(observe):
    """What follows from these (the status of a container that ended by the row) is no difference of its own."""
    ours, theirs = observe(SHIPYARD), observe(PERSONALITIES["reference"])
    differing = {label for label in theirs if ours[label] != theirs[label]}
    methods = {label.partition(":")[0] for label in differing}
    followers = {"ContainerStatus", "ListContainers", "StopPodSandbox", "RemovePodSandbox", "RemoveContainer"}
    assert methods >= CHANGED
    assert methods - CHANGED <= followers, sorted(differing)
