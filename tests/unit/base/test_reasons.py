"""Refusals: reasons and codes are closed sets, and an error names its facts."""

from __future__ import annotations

from fakecri.base.reasons import Code, CriError, Reason


def test_codes_are_grpcs_seventeen_numbers() -> None:
    assert [code.value for code in Code] == list(range(17))


def test_a_refusal_reads_as_its_reason_and_facts() -> None:
    error = CriError(Reason.CONTAINER_BAD_STATE, id="abc", state="RUNNING", input="REMOVE")
    assert error.reason is Reason.CONTAINER_BAD_STATE
    assert error.facts == {"id": "abc", "state": "RUNNING", "input": "REMOVE"}
    assert str(error) == "container_bad_state(id='abc', state='RUNNING', input='REMOVE')"
