"""The public handle for tests: a runtime on a socket of its own, with its clock, record and state."""

from fakecri.testing.runtime import FakeRuntime, TestClock

__all__ = ["FakeRuntime", "TestClock"]
