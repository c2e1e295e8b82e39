"""The judgement of a kubelet's log can fail both ways, and the committed list is well formed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

LINES = [
    'I1130 22:00:00.000001       1 server.go:1] "Started kubelet"',
    'E1130 22:00:00.000002       1 oom.go:7] "Failed to set rlimit" err="no"',
    'W1130 22:00:00.000003       1 oom.go:8] "E1130 in a warning is no error"',
]


def test_an_error_line_needs_an_entry(kubelet: ModuleType) -> None:
    allowed = [kubelet.Allowed("Failed to set rlimit", "a container may not")]
    assert kubelet.judge_log(LINES, allowed) == []
    assert kubelet.judge_log(LINES, []) == [f"not allowed: {LINES[1]}"]
    fatal = LINES[1].replace("E1130", "F1130").replace("rlimit", "anything")
    assert kubelet.judge_log([*LINES, fatal], allowed) == [f"not allowed: {fatal}"]


def test_an_entry_that_matched_nothing_is_a_fault(kubelet: ModuleType) -> None:
    allowed = [kubelet.Allowed("Failed to set rlimit", "a"), kubelet.Allowed("Started kubelet", "not an error line")]
    assert kubelet.judge_log(LINES, allowed) == ["matched nothing, so take it out: 'Started kubelet'"]
    late = kubelet.Allowed("took longer than expected", "a busy machine", happens="sometimes")
    assert kubelet.judge_log(LINES, [allowed[0], late]) == []


def test_an_entry_needs_words_and_a_reason(kubelet: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "allowed.toml"
    file.write_text('[[kubelet."1.37"]]\nwords = "x"\nreason = " "\n')
    with pytest.raises(ValueError, match=r"allowed\.toml: entry 1 of kubelet 1\.37 needs `words` and `reason`"):
        kubelet.allowed_lines("1.37", file)
    assert kubelet.allowed_lines("1.25", file) == []
    file.write_text('[[kubelet."1.37"]]\nwords = "x"\nreason = "y"\nhappens = "never"\n')
    with pytest.raises(ValueError, match="`happens` is 'never', not `always` or `sometimes`"):
        kubelet.allowed_lines("1.37", file)


def test_an_entry_may_hold_on_some_machines_only(
    kubelet: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "allowed.toml"
    file.write_text('[[kubelet."1.37"]]\nwords = "x"\nreason = "y"\nonly_on = "cgroup v1"\n')
    for holds in (True, False):
        monkeypatch.setitem(kubelet.MACHINE_FACTS, "cgroup v1", lambda holds=holds: holds)
        assert len(kubelet.allowed_lines("1.37", file)) == holds
    file.write_text(file.read_text().replace("cgroup v1", "Tuesdays"))
    with pytest.raises(ValueError, match="'Tuesdays', not one of: init is hidden, cgroup v1"):
        kubelet.allowed_lines("1.37", file)


@pytest.mark.parametrize("release", ["1.37", "1.25"])
def test_the_committed_list_reads_and_repeats_nothing(kubelet: ModuleType, release: str) -> None:
    words = [entry.words for entry in kubelet.allowed_lines(release)]
    assert words
    assert len(words) == len(set(words))
