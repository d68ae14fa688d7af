"""Requests as the tests of the protocol make them: an ask with any body, and one that must not be admitted again."""

import pytest

from counterpoint.ledger.commands import Admission, Command


class Question(Command, frozen=True):
    """An ask on a row with a body of the test's choosing, for a version of the row, by default the present one."""

    text: bytes = b"[]"
    version: int | None = None

    kind = property(lambda self: "ask")
    what = property(lambda self: "")

    def body(self):
        return self.text

    def plan(self, read):
        row = read(self.at)
        return Admission(self.at, row.version if self.version is None else self.version, "v1", row)


class Known(Question, frozen=True):
    """The same, on record already, or behind another one: it must not be checked or charged."""

    def plan(self, read):
        pytest.fail("admitted twice")
