"""The measured cases, replayed by a foreign client on ``fakecri serve``: how many each area answers as measured."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

DIFFERENCES = Path(__file__).parent / "DIFFERENCES.md"
#: Streams and a shell, which these personalities do not have yet.
EXCLUDED = ("--exclude", "execsync.*,exec.*,attach.*,portforward.*", "--skip-programs", "sh")
#: Least share of each area's cases, whatever DIFFERENCES.md says, for those that are to be a measured runtime.
LEAST_SHARE = 0.9
REPLAYS = [
    pytest.param("containerd-1.6", "containerd-1.6.20", "v1", 240, id="containerd-1.6-v1"),
    pytest.param("containerd-1.6", "containerd-1.6.20", "v1alpha2", 218, id="containerd-1.6-v1alpha2"),
    pytest.param("containerd-2.1", "containerd-2.1.9", "v1", 240, id="containerd-2.1-v1"),
    pytest.param("reference", "containerd-2.1.9", "v1", 240, id="reference-v1"),
]


def known(personality: str, api: str) -> set[str]:
    """The cases that DIFFERENCES.md names for a replay."""
    rows = re.findall(r"^\| (\S+) \| (\S+) \| (v1\S*) \| .+ \|$", DIFFERENCES.read_text(), re.MULTILINE)
    return {case for case, *replay in rows if replay == [personality, api]}


@pytest.mark.parametrize(("personality", "profile", "api", "least"), REPLAYS)
def test_answers_are_those_of_the_measured_runtime(personality, profile, api, least, serve, replay):
    outcomes = replay(serve(personality), profile, api, *EXCLUDED)
    replayed = {name: line["failed"] for name, line in outcomes.items() if "skipped" not in line}
    assert len(replayed) >= least, "fewer cases were replayed than there are"
    differing = {name: why for name, why in replayed.items() if why}
    unnamed = {name: why for name, why in differing.items() if name not in known(personality, api)}
    assert not unnamed, "mend these, or name them with their reason in DIFFERENCES.md"
    assert not known(personality, api) - differing.keys(), "these have come right: take them out of DIFFERENCES.md"
    for area, results in areas(replayed).items():
        print(f"{area}: {sum(results)} of {len(results)}")
        assert personality == "reference" or sum(results) >= LEAST_SHARE * len(results), area


def areas(replayed: dict[str, str | None]) -> dict[str, list[bool]]:
    """Whether each case of an area was answered as measured."""
    found = defaultdict(list)
    for name, why in replayed.items():
        found[name.partition(".")[0]].append(why is None)
    return found


@pytest.mark.parametrize(("personality", "profile", "api"), [replay.values[:3] for replay in REPLAYS[:3]])
def test_a_clients_deadline_ends_a_pull_where_time_is_real(personality, profile, api, serve, replay):
    outcomes = replay(serve(personality, "real"), profile, api, "--only", "pull.client-deadline")
    assert outcomes == {"pull.client-deadline": {"name": "pull.client-deadline", "failed": None}}
