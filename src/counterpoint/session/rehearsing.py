"""Rehearsals: the same calls and the same refusals on made-up rows, before any budget is spent.

A rehearsal is a session in memory over rows that are drawn from the declaration alone. It has the rule of the session
that it rehearses and begins with a copy of its account, so that it refuses what the real one would refuse; what is
launched in it is charged to that copy. Nothing of the real data is read, and nothing is written to the real ledger.
Its answers say that they are made up.

>>> import counterpoint as cp
>>> ages = {"age": cp.number(0, 120)}
>>> people = cp.Table(cp.datasets.people(), unit="person_id", rows_per_unit=1, columns=ages)
>>> session = cp.Session(people, within=cp.PureDP(1))
>>> rehearsal = session.rehearse()
>>> rehearsal.ask(cp.count(where="age >= 65"), epsilon=1).made_up, rehearsal.loss, session.loss
(True, PureDP(1), PureDP(0))
"""

from typing import TYPE_CHECKING, Any

from counterpoint.composition.rules.rule import Account
from counterpoint.ledger.memory import MemoryLedger
from counterpoint.ledger.state import Node, Row
from counterpoint.ledger.wanted import Opening, Plan, Read
from counterpoint.numbers import Exact
from counterpoint.session.running.engine import Engine

if TYPE_CHECKING:
    from counterpoint.session.session import Session


class CarriedOpening(Opening, frozen=True, kw_only=True):
    """Make the row of a rehearsal, whose account is a copy of the account of the session that it rehearses."""

    account: Account

    def plan(self, read: Read) -> Plan:
        """The account as it was when the rehearsal began."""
        root = Row(self.composition, Node(self.account, sequential=self.sequential))
        return Plan((), 0, row=root, charged=root)


def rehearse(session: "Session") -> "Session":
    """A session in memory over made-up rows, with the rule and a copy of the account of this one."""
    composition, node = session._engine.node(session._path)
    source = session._source.rehearsed()
    engine = Engine(MemoryLedger())
    engine.perform("root", CarriedOpening((), composition, node.sequential, account=node.account), None)
    return type(session)._at(source, engine, ())


class _Marked:
    """An answer of a handle in a rehearsal: it counts as what it is, and its repr says that it is made up."""

    made_up = True

    def __repr__(self) -> str:
        return f"{super().__repr__()} (made up)"


class MadeUpInt(_Marked, int):
    """A made-up whole number."""

    __str__ = int.__repr__


class MadeUpNumber(_Marked, Exact):
    """A made-up number."""

    __slots__ = ()


class MadeUpText(_Marked, str):
    """A made-up text, such as a chosen key."""

    __slots__ = ()
    __str__ = str.__str__


class MadeUpTuple(_Marked, tuple[Any, ...]):
    """Made-up numbers or keys."""

    __slots__ = ()


_MARKED: dict[type, type] = {int: MadeUpInt, Exact: MadeUpNumber, str: MadeUpText, tuple: MadeUpTuple}


def marked(answer: Any) -> Any:
    """An answer, marked as made up; a truth value and None stay as they are.

    >>> marked(3), marked(3) + 1, marked(("CA", 2))
    (3 (made up), 4, ('CA', 2) (made up))
    """
    kind = _MARKED.get(type(answer))
    return answer if kind is None else kind(answer)
