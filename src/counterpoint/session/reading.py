"""What can be read of a session: what was lost, by which theorem, what is left, what was done. Reading changes nothing.

>>> import counterpoint as cp
>>> session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
>>> session.loss, session.remaining.epsilon, [fact.kind for fact in session.history]
(PureDP(0), 1, ['open'])
"""

from counterpoint.composition.rules.filters import Filter
from counterpoint.composition.rules.rule import Remaining, Rule
from counterpoint.errors import LedgerError, NotAllowed
from counterpoint.ledger.receipts import Disclosure, Signed
from counterpoint.ledger.state import Fact, Path
from counterpoint.numbers.exact import whole
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.loss import Loss
from counterpoint.session.counting import launched_claims
from counterpoint.session.recording import shared_data
from counterpoint.session.running.engine import Engine
from counterpoint.sources.source import Source


class ReadableSession:
    """The readings of a session, from its ledger."""

    _engine: Engine
    _path: Path
    _source: Source

    def _must_be_open(self) -> None:
        """Refuse what needs an open session."""

    @property
    def rule(self) -> Rule:
        """The rule that decides."""
        return self._engine.node(self._path)[0].rule

    @property
    def loss(self) -> Loss:
        """What has been lost so far; reading it changes nothing."""
        composition, node = self._engine.node(self._path)
        return composition.rule.loss(node.account)

    @property
    def made_up(self) -> bool:
        """Whether this is a rehearsal, whose rows and answers are made up."""
        return self._source.made_up

    def loss_at(self, *, distance: int) -> Loss:
        """What has been lost between data that differ in `distance` units: a reading, at a distance fixed in advance.

        Each launch counts with its own group loss, by the session's rule (theory, Groups), which is tighter than
        `loss.group(distance)` where losses have a delta. What was delegated counts with its launches, a partition with
        the group loss of what it was charged.

        >>> import counterpoint as cp
        >>> session = cp.Session(cp.Stream(bound=1), within=cp.ApproxDP(5, 1e-6))
        >>> for _ in range(50):
        ...     _ = session.launch(cp.Laplace(epsilon=0.1))
        >>> session.loss_at(distance=3).delta, session.loss.group(3).delta > 1e-3
        (1e-6, True)
        """
        apart = whole(distance, 0, "distance")
        if self.made_up and not self._path:
            raise NotAllowed(
                "a rehearsal begins with an account, without the launches in it: read loss_at from the real session"
            )
        return self.loss if apart == 1 else self.rule.loss_at(apart, launched_claims(self._engine, self._path))

    @property
    def remaining(self) -> Remaining:
        """The largest further PureDP that fits, and the delta that is left; for anything else, `would_cost`."""
        composition, node = self._engine.node(self._path)
        return composition.rule.remaining(node.account)

    def certificate(self) -> Certificate:
        """Why the loss is what it is: the rule's derivation, on what was launched, in order, each with its path.

        A part of a partition is named by its key, and its certificate is its own session's.
        """
        composition, node = self._engine.node(self._path)
        root = composition.rule.certificate(node.account)
        launched = (self._launched((*self._path, number)) for number in range(node.launched))
        shared = () if self._path else shared_data(self._engine)
        return Certificate(root.statement, root.theorem, (*root.premises, *launched, *shared))

    def _launched(self, path: Path) -> Certificate:
        """What a launch adds to the derivation: the claim of its mechanism, with the path where it is found."""
        row = self._engine.ledger.read(path)
        if row is None:
            return Certificate(f"{path!r}: charged, and not started yet", "an open request, finished by its id")
        claimed = row.mechanism.claim.certificate
        return Certificate(f"{path!r}: {claimed.statement}", claimed.theorem, claimed.premises)

    def receipt(self, id: str) -> tuple[Signed, Disclosure]:
        """A signed receipt for the answer to the request with this id, and what opens its answer to others.

        It can be checked against the public record without a key and without this library; see the guide's page on
        receipts. Only a session with a durable ledger has receipts.
        """
        self._must_be_open()
        return self._engine.receipt(self._path, id)

    def record(self) -> list[str]:
        """The public record of the whole session as JSON lines, which `checker.py` and others' checkers read."""
        self._must_be_open()
        return list(self._engine.ledger.record())

    @property
    def history(self) -> tuple[Fact, ...]:
        """What has been done here and below, in order; public facts only, no answers."""
        here = len(self._path)
        return tuple(fact for fact in self._engine.ledger.history() if fact.path[:here] == self._path)

    def as_given(self) -> tuple[str, str]:
        """How the session that gave this one a part of its budget shows it."""
        budget = self.rule.budget if isinstance(self.rule, Filter) else self.rule
        return "delegated", f"{budget!r}, of which {self.loss!r} is used; the rest stays reserved"

    def __repr__(self) -> str:
        try:
            launched = self._engine.node(self._path)[1].launched
            rows = ", made-up rows" if self.made_up else ""
            return f"Session({self.rule!r}, {self.loss!r} lost, {launched} launched{rows})"
        except LedgerError as error:
            return f"Session(cannot be read: {type(error).__name__})"
