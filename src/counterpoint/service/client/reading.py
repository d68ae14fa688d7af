"""What the client makes of what a service said: the same losses, quotes, answers and facts as in a local session."""

from fractions import Fraction
from typing import Any, TypeVar

import msgspec

from counterpoint.composition.rules.rule import Remaining, Rule
from counterpoint.encoding import Plain, decode
from counterpoint.errors import NotAllowed
from counterpoint.ledger.state import Fact
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import Exact
from counterpoint.pictures.score import Score
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.loss import Loss
from counterpoint.service.house import SessionId
from counterpoint.session.answering.origin import Origin, Reason
from counterpoint.session.handle import Released
from counterpoint.session.quote import Quote
from counterpoint.sources.source import Prepared

T = TypeVar("T")


def loss_of(said: dict[str, Any]) -> Loss:
    """A loss."""
    return _read(said["exact"], Loss)  # type: ignore[type-abstract]  # a family is read by its tags


def mechanism_of(said: dict[str, Any]) -> Mechanism:
    """A mechanism."""
    return _read(said["exact"], Mechanism)  # type: ignore[type-abstract]


def rule_of(said: dict[str, Any]) -> Rule:
    """The rule of a session."""
    return _read(said["exact"]["rule"], Rule)  # type: ignore[type-abstract]


def remaining_of(said: dict[str, Any]) -> Remaining:
    """What is left of a session's budget; `NotAllowed` if it has none."""
    left = said["remaining"]
    if left is None:
        raise NotAllowed(said["no_budget"])
    return Remaining(Exact(left["exact"]["epsilon"]), Exact(left["exact"]["delta"]))


def quote_of(said: dict[str, Any]) -> Quote:
    """What a launch would cost."""
    after, launched = said["after"], said["mechanism"]
    return Quote(
        loss_of(said["cost"]),
        None if after is None else loss_of(after),
        said["refusal"],
        None if launched is None else mechanism_of(launched),
    )


def origin_of(said: dict[str, Any]) -> Origin:
    """What was released to a question, and where it comes from."""
    exact = said["exact"]
    compared: Any = _read(exact["compared"], Plain)  # type: ignore[arg-type]  # plain data is read by what it is
    return Origin(
        _read(exact["mechanism"], Mechanism),  # type: ignore[type-abstract]
        prepared_of(exact["prepared"]),
        _plain(exact["released"]),
        Reason(compared, exact["wanted"]),
        said["made_up"],
    )


def released_of(said: dict[str, Any]) -> Released:
    """What a launched mechanism answered."""
    exact = said["exact"]
    prepared = None if exact["prepared"] == "null" else prepared_of(exact["prepared"])
    return Released(_plain(exact["released"]), prepared, Fraction(exact["grid"]), said["made_up"])


def prepared_of(text: str) -> Prepared:
    """What is public about a request."""
    found = _plain(text)
    assert isinstance(found, Prepared)
    return found


def certificate_of(said: dict[str, Any]) -> Certificate:
    """A derivation."""
    return Certificate(said["statement"], said["theorem"], tuple(map(certificate_of, said["premises"])))


def score_of(said: dict[str, Any]) -> Score:
    """What a session is drawn from."""
    return msgspec.convert(said, Score)


def fact_of(said: dict[str, Any]) -> Fact:
    """One line of a history."""
    return Fact(said["kind"], SessionId.read(said["at"]).path, said["what"], said["who"], said["when"])


def _plain(text: str) -> Plain:
    return _read(text, Plain)  # type: ignore[arg-type]


def _read(text: str, kind: type[T]) -> T:
    return decode(text.encode(), kind)
