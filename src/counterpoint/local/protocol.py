"""A local protocol: an untrusted server, and users that answer it with mechanisms of their own.

See Henzinger et al. 2024, sec. 8.

The server sees answers and nothing else. The loss is that of its whole view (its coins and all messages), whatever the
server does: it is the parallel composition of the users, of whom neighbouring data reach at most k (Henzinger et al.
2024, Thm 8.7, Cor 8.8). The engine keeps the view, enforces the property `allowed` on the queries to each user, and
lets users come, go and change their data (Henzinger et al. 2024, Remark 8.10).

>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.local.responders import Among, Membership
>>> from counterpoint.local.users import Round
>>> from counterpoint.privacy.relations import first_pair_consistent
>>> class Once(Server):
...     def start(self):
...         return None
...     def turn(self, own, answers, coins):
...         return own, Round((0, 1, 2), Among(1, (1,))) if answers is None else Done(sum(bit for bit, in answers))
>>> from counterpoint.privacy.relations import FirstMessage
>>> from counterpoint.local.properties import AtMost
>>> protocol = Protocol(Once(), [Membership(2, bits=1)] * 3, first_pair_consistent(1, FirstMessage()), AtMost(1))
>>> protocol.claim.loss, protocol.run([1, 0, 1], SeededCoins(1)).result in range(4)
(PureDP(2), True)
"""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from counterpoint.coins.coins import Coins
from counterpoint.coins.secure import SecureCoins
from counterpoint.coins.tape import RecordingCoins, Tape
from counterpoint.composition.accumulator import Account
from counterpoint.composition.parallel import Entries, Parallel
from counterpoint.errors import Halted, InvalidParameter, NotCovered, RelationMismatch
from counterpoint.local.properties import Anything, Guarded, Property
from counterpoint.local.users import Answers, Query, QueryHistory, UserObjects, Users, indices
from counterpoint.measures import PureDP
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.composite_parts import composed
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import Number
from counterpoint.numbers.exact import whole
from counterpoint.privacy.certificates import Certificate
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.relations import Sparse
from counterpoint.privacy.secret import Raw, Secret


@dataclass(frozen=True)
class Done:
    """The server has finished, with this result."""

    result: Any = None


class Server:
    """The party that asks: any program over the answers it gets, with coins of its own.

    See Henzinger et al. 2024, Remark 8.3.

    `turn` gets what it remembers and the answers to its last round (None at first), and returns the next round, or
    `Done`.
    """

    @abstractmethod
    def start(self) -> Any:
        """What it remembers before its first turn."""

    @abstractmethod
    def turn(self, own: Any, answers: Answers | None, coins: Coins) -> tuple[Any, Query | Done]:
        """What it remembers next, and what it does."""


@dataclass(frozen=True)
class ServerView:
    """What the server saw: its own coins, and each round with its answers (Henzinger et al. 2024, Def 8.1)."""

    coins: Tape = field(repr=False)
    rounds: tuple[tuple[Query, Answers], ...]


@dataclass(frozen=True)
class ProtocolOutcome:
    """The end of a protocol: the server's result, its view (None if it was not kept), and the claim."""

    result: Any
    rounds: int
    asks: int
    claim: Claim
    view: ServerView | None = field(default=None, repr=False)


class Protocol:
    """A server and its users; `neighbours` says how data of neighbours differ, `allowed` what a user may be asked.

    `users` is a list of mechanisms, or a `Crowd`. Users may have unlike losses: the k largest are paid for, and a user
    who joins later must find a place among them (theory, Parallel composition). `delta_total` is for approximate losses
    on data that change (Henzinger et al. 2024, Thm 5.4). What no theorem covers is refused here, not at the end.
    """

    def __init__(
        self,
        server: Server,
        users: Users | Iterable[Mechanism],
        neighbours: Sparse,
        allowed: Property | None = None,
        *,
        delta_total: Number | None = None,
    ) -> None:
        if not all(map(isinstance, (server, neighbours), (Server, Sparse))):
            raise InvalidParameter(
                "a protocol has a Server, and neighbours that are k-sparse: first_pair_consistent(k, FirstMessage()) "
                "for data that do not change, k_sparse(k, ...) for data that do"
            )
        self.server = server
        self.users = users if isinstance(users, Users) else UserObjects(users)
        self.neighbours = neighbours
        self.allowed = Anything() if allowed is None else allowed
        if not isinstance(self.allowed, Property):
            raise InvalidParameter("`allowed` is a property of queries, such as AtMost(1)")
        self.rule = Parallel(
            neighbours.k,
            each=self._largest(neighbours.k),
            delta_total=delta_total,
            first_pair=neighbours.first_pair,
        )
        for mechanism in self.users.mechanisms:
            self.admit(mechanism)
        self.launched()

    @property
    def mechanism(self) -> Concurrent:
        """The users as one mechanism that any server may talk to: what is to be verified."""
        return Concurrent(self.rule, self.neighbours)

    def _largest(self, count: int) -> Loss | list[Loss]:
        """The largest losses of `count` users: one loss if it covers all, else coordinate by coordinate, or a chain."""
        kinds = self.users.mechanisms
        losses = {mechanism: Guarded(mechanism, self.allowed).claim.loss for mechanism in kinds}
        if not losses:
            return PureDP(0)
        users = self.users.users if isinstance(self.users, UserObjects) else kinds * count  # a crowd has any number
        ordered = Entries.of(losses[user] for user in users).losses[:count]
        every = [*ordered, *[ordered[-1]] * (count - len(ordered))]
        return every[0] if len(set(every)) == 1 else every

    def admit(self, mechanism: Mechanism) -> Guarded:
        """The user behind its guard, if the protocol's promise holds with it; or the reason why not."""
        guarded = Guarded(mechanism, self.allowed)
        self.mechanism.admit(self.rule.start(), guarded)
        return guarded

    def launched(self) -> Account:
        """The account of the users who begin: of each of them where their losses are unlike, or where every user's
        delta counts (Henzinger et al. 2024, Thm 5.4).
        """
        account: Account = self.rule.start()
        if isinstance(self.rule.each, Loss) and not self.rule.counts_every_delta:
            return account
        if not isinstance(self.users, UserObjects):
            raise NotCovered(
                "users of unlike losses are counted one by one, and on data that change every user's delta is: give "
                "them as a list of mechanisms, not as a crowd"
            )
        for mechanism in self.users.users:
            account = self.mechanism.admit(account, Guarded(mechanism, self.allowed))
        return account

    @property
    def claim(self) -> Claim:
        """What the server's view may reveal, by the composition of at most k users."""
        loss = self.rule.bound(self.neighbours)
        promise = self.rule.promise(self.neighbours)
        users = tuple(self.admit(mechanism).claim.certificate for mechanism in self.users.mechanisms)
        together = Certificate(promise.statement, promise.theorem, users)
        theorem = (
            "Henzinger et al. 2024, Thm 8.7, Cor 8.8"
            if self.neighbours.first_pair
            else "Henzinger et al. 2024, Thm 8.7 with Remark 8.10"
        )
        statement = f"{loss!r} for the server's view, for neighbours {self.neighbours.in_words}"
        return Claim(loss, self.neighbours, Certificate(statement, theorem, (together,)))

    def collusion(self, targets: int) -> Claim:
        """What is left if all users but `targets` of them collude with the server.

        See Henzinger et al. 2024, Remark 8.11.

        It is the concurrent composition of the targets, for data that may differ in all of them at once.

        >>> from counterpoint.local.cores import core_protocol
        >>> core_protocol(4, epsilon=1).collusion(targets=1).loss
        PureDP(0.5)
        """
        several = whole(targets, 1, "the number of targets")
        data = Sparse(several, self.neighbours.inner, self.neighbours.first_pair)
        largest = self._largest(several)
        loss = composed([largest] * several if isinstance(largest, Loss) else largest)
        users = tuple(self.admit(mechanism).claim.certificate for mechanism in self.users.mechanisms)
        statement = f"{loss!r} for {several} users' data, if all others and the server collude"
        theorem = (
            "Henzinger et al. 2024, Remark 8.11: concurrent composition of the targets (Henzinger et al. "
            "2024, Thm 4.12)"
        )
        return Claim(loss, data, Certificate(statement, theorem, users))

    def open(
        self, data: Any, coins: Coins | None = None, *, server_coins: Coins | None = None, keep_view: bool = True
    ) -> "Running":
        """Let the users begin with their data; the server has not asked anything yet."""
        return Running(self, data, coins or SecureCoins(), server_coins or SecureCoins(), keep_view)

    def run(
        self, data: Any, coins: Coins | None = None, *, server_coins: Coins | None = None, keep_view: bool = True
    ) -> ProtocolOutcome:
        """The whole protocol, until the server is done."""
        return self.open(data, coins, server_coins=server_coins, keep_view=keep_view).finish()


class Running:
    """A protocol under way: take turns, and between them let users join, leave and change their data.

    Which users join and leave, and when data arrive, is public; the data is not.
    """

    def __init__(self, protocol: Protocol, data: Any, coins: Coins, server_coins: Coins, keep_view: bool) -> None:
        self.protocol = protocol
        self._coins = coins
        self._tossed = RecordingCoins(server_coins)
        self._account = protocol.launched()
        self._users = protocol.users.meet(data, coins)
        self._history = QueryHistory(protocol.allowed)
        self._own = protocol.server.start()
        self._answers: Answers | None = None
        self._seen: list[tuple[Query, Answers]] | None = [] if keep_view else None
        self._done: Done | None = None
        self.rounds = self.asks = 0

    @property
    def own(self) -> Any:
        """What the server remembers: public."""
        return self._own

    @property
    def done(self) -> bool:
        """Whether the server has finished."""
        return self._done is not None

    def turn(self) -> bool:
        """One turn of the server; whether there will be another.

        A round that a user would refuse, or that the property does not allow, raises and changes nothing.
        """
        if self.done:
            raise Halted("the server has finished")
        own, move = self.protocol.server.turn(self._own, self._answers, self._tossed)
        if isinstance(move, Done):
            self._own, self._done = own, move
            return False
        answers = self.ask(move)
        self._own, self._answers = own, answers
        return True

    def ask(self, asked: Query) -> Answers:
        """Ask the users one round; the answers become part of the view."""
        read = self._users.read_once(asked)
        to = indices(read.to, self._users.size)
        self._users.check(to, read)
        if not isinstance(self.protocol.allowed, Anything):
            self._history.note(to, read.query)
        answers = self._users.reply(to, read, self._coins)
        self.rounds, self.asks = self.rounds + 1, self.asks + len(to)
        if self._seen is not None:
            self._seen.append((read, answers))
        return answers

    def finish(self) -> ProtocolOutcome:
        """All remaining turns."""
        while not self.done and self.turn():
            pass
        assert self._done is not None
        view = None if self._seen is None else ServerView(self._tossed.tape, tuple(self._seen))
        return ProtocolOutcome(self._done.result, self.rounds, self.asks, self.protocol.claim, view)

    def join(self, mechanism: Mechanism, data: Raw | Secret, *, sensitivity: int = 1) -> int:
        """A new user with its data; its number."""
        self._account = self.protocol.mechanism.admit(self._account, self.protocol.admit(mechanism))
        return self._users.join(mechanism, data, self._coins, sensitivity)

    def update(self, user: int, data: Raw | Secret, *, sensitivity: int = 1) -> None:
        """A change of one user's data."""
        if self.protocol.neighbours.first_pair:
            raise RelationMismatch(
                "these neighbours are first-pair consistent: they differ in the data that users begin with. Where "
                "later data may differ too, say neighbours=k_sparse(k, Steps(total=1)) (Henzinger et al. "
                "2024, Remark 8.10)"
            )
        self._users.update(user, data, self._coins, sensitivity)

    def leave(self, user: int) -> None:
        """A user leaves; it is never asked again, and its state is forgotten."""
        self._users.leave(user)
