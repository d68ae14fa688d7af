"""The certificate in words, for a reader who knows no theorem: what is promised, what was spent on which question, by
whom, why that holds, what is not promised, and how to check it. It prints as a letter.

>>> factor(0.5), factor(2), factor(800)
('1.65', '7.39', '10^348')
>>> one_in(Fraction(1, 100000)), one_in(Fraction(3, 10**6))
('1 in 100,000', '1 in 333,333')
"""

import re
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, exp, floor, log
from typing import Any

from litestar import Response, get

from counterpoint.errors import NotCovered
from counterpoint.ledger.state import HistoryEntry, LaunchRecord, Path
from counterpoint.measures.loss import Loss
from counterpoint.service.api.inputs import InPath, TheRegistry
from counterpoint.service.identity import Principal
from counterpoint.service.pages.access import OVERSEERS, By, grants_around, visible_history, visible_timeline
from counterpoint.service.pages.render import page
from counterpoint.service.pages.session import CitedWork, cited, place_of
from counterpoint.service.pages.widgets import meter_with, reserves
from counterpoint.service.pages.words import asked_text, figure, moment
from counterpoint.session.session import Session
from counterpoint.session.timeline import gauge_of
from counterpoint.wire.problems import SessionId

MOST_LINES = 30
"""How many questions the letter lists; of more, the newest."""
_READ_AT = Fraction(1, 10**6)
REASONS = {
    "Laplace": (
        "Counts and sums get random noise.",
        "The noise is as large as what one unit can change, divided by ε, and hides the change.",
    ),
    "Gaussian": (
        "Counts and sums get random noise.",
        "The noise is normally distributed, and so wide that what one unit can change hides in it.",
    ),
    "AboveThreshold": (
        "It is only said whether a number is above a threshold.",
        "The threshold and each number get noise; only the one answer that says above is paid for.",
    ),
    "SparseVector": (
        "It is only said whether numbers are above a threshold.",
        "The threshold and each number get noise; only the answers that say above are paid for.",
    ),
    "NoisyMax": (
        "The best of several choices is picked at random, better ones more often.",
        "How much more often is limited by ε.",
    ),
    "GaussianSelection": (
        "Names are shown only if many units have them.",
        "Each number of units gets noise, and names with a small one stay hidden.",
    ),
    "PartitionSelection": (
        "Names are shown only if many units have them.",
        "A name that only one unit has stays hidden, but for a chance that is counted.",
    ),
    "Counter": (
        "A running count gets random noise at every step.",
        "The noise of one step is used again in the steps after it, so a long count costs no more than was paid.",
    ),
    "GuessAndCheck": (
        "A guess is checked, and only surprises are paid for.",
        "Whether a guess is good gets noise; where it is not, the number that replaces it gets noise, too.",
    ),
    "LinearGuessAndCheck": (
        "A guess is checked, and only surprises are paid for.",
        "Whether a guess is good gets noise; where it is not, the number that replaces it gets noise, too.",
    ),
    "Sampled": (
        "Only a secret sample of the units is looked at.",
        "Which units are in it stays secret, so an answer says less about each of them.",
    ),
    "Concurrent": (
        "A part of the budget was given away.",
        "All of it counts as spent here at once; what is asked within it is checked against it again.",
    ),
}
"""What keeps the answers of each kind of mechanism from telling too much, for a reader who knows no theorem."""
_ANY = ("Its answers are limited by a theorem of its own.", "The theorem is named here, and in the certificate.")


@dataclass(frozen=True, slots=True)
class PaidLine:
    """Something that was paid for: when, by whom, what, where, for which reason, at which price."""

    at: int
    who: str
    asked: str
    lane: str
    why: str
    cost: str


@dataclass(frozen=True, slots=True)
class WhyLine:
    """Why the price of a line, or of all lines together, is what it is."""

    letter: str
    says: str
    because: str
    by: str


@dataclass(frozen=True, slots=True)
class _Paid:
    fact: HistoryEntry
    child: Path


@get("/sessions/{session:str}/in-words", sync_to_thread=True, include_in_schema=False)
def show(registry: TheRegistry, by: By, session: InPath) -> Response[Any]:
    """The letter about a session that its reader may see."""
    place = place_of(registry, by.who, session)
    found = place.session
    timeline = visible_timeline(found, by.who)
    meter = replace(meter_with(timeline, reserves(found, timeline)), ended=place.ended)
    paid = _paid(found, by.who)
    lines, reasons, works = _explained(found, place.id.data_set, paid[-MOST_LINES:])
    facts = visible_history(found, by.who)
    described = found._source.describe()
    promised = _bound(found)
    return page(
        "explain",
        by,
        here="/",
        place=place,
        granted_to=[grant.to for grant in grants_around(found)][-1:],
        now=moment(time.time()),
        entries=found._engine.ledger.head(),
        promise=" ".join(described.split("\n\n")[0].split()),
        unit=_unit(described),
        used=_strength(found.loss),
        limit=None if promised is None else _strength(promised),
        limit_words=None if promised is None else repr(promised),
        meter=meter,
        lines=lines,
        earlier=len(paid) - len(lines),
        refused=sum(fact.kind in ("refusal", "denial") for fact in facts),
        reasons=reasons,
        together=reasons[-2].letter,
        loss=found.loss,
        works=works,
        overseer=by.who.role in OVERSEERS,
    )


def _paid(session: Session, who: Principal) -> list[_Paid]:
    """What was paid for in the session and in those inside it, as far as its reader sees."""
    launched: dict[Path, int] = defaultdict(int)
    cut: set[Path] = set()
    found = []
    for fact in visible_history(session, who):
        if fact.kind not in ("launch", "question", "delegation") or fact.path in cut:
            continue
        child = (*fact.path, launched[fact.path])
        launched[fact.path] += 1
        if fact.kind == "delegation" and "rule=Parallel(" in fact.what:
            cut.add(child)
        found.append(_Paid(fact, child))
    return found


def _explained(
    session: Session, data_set: str, paid: Sequence[_Paid]
) -> tuple[list[PaidLine], list[WhyLine], list[CitedWork]]:
    """The lines, the reasons that they name by a letter, and the works that those cite."""
    rows: dict[Path, LaunchRecord | None] = {one.child: None for one in paid}
    session._engine.ledger.read_all(rows)
    gauge = gauge_of(session)
    reasons: dict[str, WhyLine] = {}
    lines = []
    certificates = []
    for fact, child in ((one.fact, one.child) for one in paid):
        row = rows[child]
        if row is None:
            continue
        kind, claim = type(row.mechanism).__name__, row.mechanism.claim
        if kind not in reasons:
            certificates.append(claim.certificate)
            reasons[kind] = WhyLine(_letter(len(reasons)), *REASONS.get(kind, _ANY), claim.certificate.theorem)
        cost = f"{gauge.budget.symbol} {gauge.spelled(claim.loss)}".replace(f"{gauge.budget.symbol} ρ", "ρ")
        lane = f"{SessionId(data_set, fact.path)} {int(child[-1]) + 1}"
        lines.append(PaidLine(fact.at, fact.who, _asked(fact), lane, reasons[kind].letter, cost))
    composition, node = session._engine.node(session._path)
    derived = composition.rule.certificate(node.account)
    sums = derived.premises[0] if derived.premises else derived
    together = (
        "Costs add up, in whatever order people ask.",
        "What is stated together limits what all answers say together, also where a question depends on earlier "
        "answers, and those of other people.",
    )
    limit = (
        "The limit cannot be passed.",
        "Before a question touches the data, its cost is compared with what is left. What does not fit is refused.",
    )
    listed = [
        *reasons.values(),
        WhyLine(_letter(len(reasons)), *together, sums.theorem),
        WhyLine(_letter(len(reasons) + 1), *limit, derived.theorem),
    ]
    works = {work.name: work for certificate in (*certificates, derived) for work in cited(certificate)}
    return lines, listed, list(works.values())


def _letter(number: int) -> str:
    return chr(ord("A") + number)


def _asked(fact: HistoryEntry) -> str:
    """What was asked, as a form takes it; of a part of the budget that was given away, to whom."""
    if fact.kind == "delegation":
        budget, _, to = fact.what.rpartition(" at ")[2].partition(", granted to ")
        return f"{budget} for {to}" if to else f"{budget} for a part of the work"
    return asked_text(fact.kind, fact.what)


@dataclass(frozen=True, slots=True)
class Strength:
    """A loss as a factor, and the chance that is left outside it, in words; none where there is none."""

    factor: str
    outside: str


def _strength(loss: Loss) -> Strength:
    """A loss as people can read it: of one that has a delta of its own, at that delta."""
    amounts = dict(zip(loss.letters, loss.amounts, strict=False))
    if loss.letters[:1] == ("ε",) and amounts:
        delta = Fraction(amounts.get("δ", 0))
        return Strength(factor(float(amounts["ε"])), one_in(delta) if delta else "")
    return Strength(factor(loss.epsilon_at(_READ_AT)), one_in(_READ_AT))


def factor(epsilon: float) -> str:
    """The factor e to the epsilon, rounded up to three digits."""
    if epsilon > 30:
        return "more than can be told apart from none" if epsilon == float("inf") else f"10^{ceil(epsilon / log(10))}"
    value = exp(epsilon)
    step = 10.0 ** (floor(log(value, 10)) - 2)
    return figure(ceil(value / step) * step)


def one_in(delta: Fraction) -> str:
    """A chance as people say it, rounded up."""
    return f"1 in {floor(1 / delta):,}"


def _bound(session: Session) -> Loss | None:
    try:
        return session.rule.bound(session._source.relation)
    except NotCovered:
        return None


def _unit(described: str) -> str:
    """What is protected, in a word."""
    found = re.search(r"^unit: (.+)$", described, re.MULTILINE)
    return found[1] if found else "item"
