"""The engine: launches and asks against a ledger, by the same `admit` and `step` that `Concurrent` runs on.

A session's row keeps an account and how many children were launched, not the children themselves, so a launch costs the
same however many there are. Each launch and each ask has a seed of its own; coins are derived from that seed, the path,
the version and the body of the request, so a step can be finished or replayed and never draws twice.

The way of a question (DESIGN): the mechanism accepts it, by public facts; the intent is recorded; the source
evaluates it; the mechanism steps; state and answer are settled together; the answer is released.
"""

import hashlib
import threading
import uuid
from collections.abc import Callable

from counterpoint.composition.rule import Account
from counterpoint.encoding import Plain, Value, digest, encode
from counterpoint.errors import NotAllowed
from counterpoint.ledger.ledger import Done, Fact, Intent, Ledger, Path, Plan, Row
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Mechanism, State, ready
from counterpoint.privacy.messages import Ask
from counterpoint.privacy.relations import Relation
from counterpoint.privacy.secret import Secret
from counterpoint.randomness.secure import SecureCoins
from counterpoint.sources.source import Prepared, Source


class Node(State, Value, frozen=True):
    """The state of a composition whose children have rows of their own: its account, and how many there are."""

    account: Account
    launched: int = 0


class Engine:
    """Launches and asks, on one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._guard = threading.Lock()
        self._locks: dict[Path, threading.Lock] = {}

    def open_root(self, composition: Concurrent) -> None:
        """Make the row of the whole session, if it is not there yet."""
        root = Row(composition, Node(composition.rule.start()))

        def plan() -> Plan:
            return Plan((), 0, charged=(((), root),))

        intent = self.ledger.intent("root", encode(composition), Fact("open", (), repr(composition.rule)), plan)
        if isinstance(intent, Intent):
            self.ledger.settle(intent, root, None)

    def node(self, path: Path) -> tuple[Concurrent, Node]:
        """The composition at a path, and its account."""
        row = self._row(path)
        assert isinstance(row.mechanism, Concurrent) and isinstance(row.state, Node)
        return row.mechanism, row.state

    def _row(self, path: Path) -> Row:
        row = self.ledger.read(path)
        if row is None:
            raise NotAllowed(f"there is nothing at {path!r}")
        return row

    def launch(
        self,
        parent: Path,
        mechanism: Mechanism,
        data: Relation,
        *,
        cursor: int | str = 0,
        name: str | None = None,
        request: str | None = None,
    ) -> Path:
        """Check the relation, charge the account and start the mechanism; its path. A refusal leaves nothing behind."""

        def plan() -> Plan:
            row = self._row(parent)
            composition, node = self.node(parent)
            account = composition.admit(node.account, mechanism, data)
            path = (*parent, node.launched if name is None else name)
            charged = Row(composition, Node(account, node.launched + 1), row.version + 1)
            return Plan(path, 0, cursor, ((parent, charged),))

        body = encode(("launch", parent, name, mechanism))
        fact = Fact("launch", parent, f"{mechanism!r} at {mechanism.claim.loss!r}")
        intent = self.ledger.intent(request or _fresh(), body, fact, plan)
        if isinstance(intent, Done):
            assert isinstance(intent.answer, tuple)
            return tuple(step for step in intent.answer if isinstance(step, int | str))
        state: State = (
            Node(mechanism.rule.start()) if isinstance(mechanism, Concurrent) else mechanism.start(_coins(intent))
        )
        self.ledger.settle(intent, Row(mechanism, state, 0, intent.pin), intent.path)
        return intent.path

    def quote(self, parent: Path, mechanism: Mechanism, data: Relation) -> Account:
        """The account after such a launch, or the reason why not: the dry run, by the same code."""
        composition, node = self.node(parent)
        return composition.admit(node.account, mechanism, data)

    def ask(
        self,
        path: Path,
        source: Source,
        prepared: Prepared | None,
        public: Plain,
        *,
        check: Callable[[], None] = lambda: None,
        request: str | None = None,
    ) -> Plain:
        """One ask: checked in public, recorded, evaluated, stepped, settled; the mechanism's own answer."""
        name = request or _fresh()
        body = encode(("ask", path, prepared, public))
        with self._lock(path):
            check()

            def plan() -> Plan:
                row = self._row(path)
                blank = None if prepared is None else prepared.blank()
                ready(row.mechanism, row.state, _message(public, prepared, blank))
                return Plan(path, row.version, source.pin())

            intent = self.ledger.intent(name, body, Fact("ask", path, repr(prepared and prepared.request)), plan)
            return intent.answer if isinstance(intent, Done) else self._answer(intent, source, prepared, public)

    def _answer(self, intent: Intent, source: Source, prepared: Prepared | None, public: Plain) -> Plain:
        row = self._row(intent.path)
        mechanism, state, coins = row.mechanism, row.state, _coins(intent)
        assert state is not None
        for update in source.items(row.cursor, intent.pin):
            if mechanism.accepts(update):
                after, _ = mechanism.step(state, update, coins)
                assert after is not None, "an update cannot halt a mechanism"
                state = after
        private = None if prepared is None else source.resolve(intent.pin, prepared)
        last, answer = mechanism.step(state, _message(public, prepared, private), coins)
        self.ledger.settle(intent, Row(mechanism, last, row.version + 1, intent.pin), answer)
        said: Plain = answer
        return said

    def _lock(self, path: Path) -> threading.Lock:
        with self._guard:
            return self._locks.setdefault(path, threading.Lock())


def _message(public: Plain, prepared: Prepared | None, private: Secret | None) -> Ask:
    if prepared is None:
        return Ask(public)
    each, one_way = prepared.each, prepared.one_way
    return Ask(public, private, prepared.sensitivity, prepared.squared, each=each, one_way=one_way)


def _coins(intent: Intent) -> SecureCoins:
    """Coins that belong to this step alone: seed, path, version and body all enter."""
    bound = digest(intent.path, intent.version, hashlib.sha256(intent.body).hexdigest())
    return SecureCoins(hashlib.sha256(intent.seed + bound).digest())


def _fresh() -> str:
    return uuid.uuid4().hex
