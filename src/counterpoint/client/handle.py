"""A mechanism that was launched in a service, and postprocessors that run in the client before it.

A postprocessor is never sent. The service launches the mechanism behind all postprocessors, by its allow-list, and
charges that one. What reaches the mechanism is a sequence of asks, which its claim covers whoever made them, so the
charge does not depend on the postprocessor. It is accepted where a local session would accept it: where the relation is
closed (Haney et al. 2023, Thm 2.17).

`Postprocessed.step` runs it on an `InService` mechanism, whose step is a call. The handle keeps the postprocessor's
memory in this process; a new launch starts afresh. An ask with an `id` that was lost is made again from the same memory
with the same coins, and its calls have the ids `id/1`, `id/2`, ..., so the service returns the same answers.

>>> from counterpoint import Laplace, postprocess
>>> from counterpoint.coins import SeededCoins
>>> from counterpoint.mechanisms import Ask, Postprocessor
>>> from counterpoint.encoding import Value
>>> from counterpoint.client import codec
>>> class AsksTwice(Postprocessor, Value, frozen=True):
...     def start(self):
...         return None
...     def react(self, own, request, ask):
...         return own, ask() + ask()
>>> mechanism = postprocess(AsksTwice(), Laplace(1, asks=2))
>>> served = around(mechanism, InService(codec.innermost(mechanism), lambda public: (20, False)))
>>> served.step(begun(mechanism, halted=False), Ask(private=0), SeededCoins(1))[1]
40
"""

import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn, TypeAlias

from counterpoint.client import codec
from counterpoint.client.calls import Call, Calls, Reaction, Remote, Runner, not_served, served
from counterpoint.coins.coins import Coins
from counterpoint.coins.secure import SecureCoins
from counterpoint.composition.rule import Rule
from counterpoint.display.markup import Picture
from counterpoint.encoding import Plain, encode
from counterpoint.errors import BudgetExceeded, CounterpointError, InvalidRequest, NotCovered
from counterpoint.ledger.ledger import conflict
from counterpoint.ledger.state import Path, failed
from counterpoint.measures.loss import Loss
from counterpoint.mechanisms.mechanism import Answer, Left, Mechanism, State
from counterpoint.mechanisms.postprocessing import Both, Failed, Postprocessed
from counterpoint.numbers import Exact, Number
from counterpoint.privacy.claims import Claim
from counterpoint.privacy.messages import Ask, Message
from counterpoint.queries.request import PreparedQuery
from counterpoint.session.fit import explained, public_part
from counterpoint.session.handle import Released, error_of, series_of
from counterpoint.wire.documents import read_mechanism, read_prepared, read_released
from counterpoint.wire.problems import SessionId
from counterpoint.wire.requests import EXACT, encode_public


class RemoteHandle(Remote):
    """The analyst's end of one launched mechanism; the calls of a local `Handle`."""

    def __init__(self, service: Runner, response: dict[str, Any]) -> None:
        self._service = service
        self._id = SessionId.read(response["handle"])
        self._grid, self._made_up = Fraction(response["grid"]), bool(response["made_up"])
        self.mechanism = read_mechanism(response)
        self.data_version = int(response["data_version"])
        """The number of the version of the data that it was launched on, and keeps."""

    @property
    def path(self) -> Path:
        """Where this handle is found again: `session.at(handle.path)`."""
        return self._id.path

    @property
    def cost(self) -> Loss:
        """What launching it has cost; asking costs nothing more."""
        return self.mechanism.claim.loss

    @served
    def ask(self, /, request: object = None, *, id: str | None = None, **options: Any) -> Calls[Any]:
        """Ask; the answer is in the request's units. The same `id` gets the same answer."""
        body: dict[str, Any] = {"options": {name: codec.encode_option(name, given) for name, given in options.items()}}
        if request is not None:
            body["request"] = codec.encode_request(request)
        response = yield Call("POST", f"/v1/handles/{self._id}/asks", body, codec.request_id(id))
        return read_released(response).in_units()

    @served
    def error(self, request: object, probability: Number = "0.95", *, simultaneous: bool = False) -> Calls[Any]:
        """How far off the answer to this request would be at most, with this probability; nothing is asked."""
        sure = codec.encode_number(probability, "probability")
        body = {"request": codec.encode_request(request), "probability": sure, "simultaneous": simultaneous}
        response = yield Call("POST", f"/v1/handles/{self._id}/errors", body)
        most = Exact(response["exact"])
        return int(most) if response["whole"] else most

    def plot(self, answers: Mapping[int, float | Fraction], probability: Number = "0.95") -> Picture:
        """These answers of a counter as a line, with the band of their error; drawn here, nothing is asked."""
        return series_of(self.mechanism, self._grid, answers, probability, made_up=self._made_up)

    @property
    @served
    def halted(self) -> Calls[bool]:
        """Whether the mechanism has given its last answer."""
        response = yield Call("GET", f"/v1/handles/{self._id}")
        return bool(response["halted"])

    def __getattr__(self, name: str) -> NoReturn:
        not_served("Handle", name)

    def __repr__(self) -> str:
        return f"RemoteHandle({self.mechanism!r} at {str(self._id)!r})"


Told: TypeAlias = tuple[Plain, bool]
"""What the mechanism in the service answered, and whether that was its last answer."""
_RUNNING = Left(1)


class InService(Mechanism):
    """A mechanism whose state is in a service: here it says what it accepts, and its step is a call."""

    def __init__(self, mechanism: Mechanism, ask: Callable[[Plain], Told]) -> None:
        self._mechanism, self._ask = mechanism, ask
        self.failure: BaseException | None = None

    @property
    def claim(self) -> Claim:
        """That of the mechanism."""
        return self._mechanism.claim

    @property
    def asks_are_public(self) -> bool:
        """As of the mechanism."""
        return self._mechanism.asks_are_public

    def accepts(self, message: object) -> bool:
        """Whether the mechanism accepts this message."""
        return self._mechanism.accepts(message)

    def start(self, _coins: Coins) -> State:
        """It was started when it was launched."""
        return _RUNNING

    def step(self, _state: State, message: Message, _coins: Coins) -> tuple[State | None, Answer]:
        """Ask the service. A failed call is kept in `failure`: the whole reaction then did not happen."""
        assert isinstance(message, Ask)
        if self.failure is not None:
            raise self.failure
        try:
            answer, last = self._ask(message.public)
        except BaseException as error:
            self.failure = error
            raise
        return None if last else _RUNNING, answer


def around(mechanism: Mechanism, inner: Mechanism) -> Mechanism:
    """The same postprocessors before another mechanism."""
    if not isinstance(mechanism, Postprocessed):
        return inner
    return Postprocessed(mechanism.postprocessor, around(mechanism.mechanism, inner))


def begun(mechanism: Mechanism, *, halted: bool) -> State | None:
    """The memories of the postprocessors at their start."""
    if not isinstance(mechanism, Postprocessed):
        return None if halted else _RUNNING
    own = mechanism.postprocessor.start()
    encode(own)  # raises where it is not plain, holds a float or holds a secret
    return Both(own, begun(mechanism.mechanism, halted=halted))


def not_covered(claim: Claim, rule: Rule) -> NotCovered | None:
    """Why a rule has no theorem for this claim, if it has none; what is left of the budget is the service's to say."""
    try:
        rule.charge(rule.start(), claim)
    except NotCovered as refused:
        return refused
    except BudgetExceeded:
        return None
    return None


@dataclass
class _Attempt:
    """One ask of the analyst's: its coins, and what the mechanism has answered so far."""

    id: str
    seed: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    told: dict[tuple[int, bytes], Told] = field(default_factory=dict)


class PostprocessedHandle(RemoteHandle):
    """The analyst's end of a mechanism in a service, and postprocessors before it that run here."""

    def __init__(self, service: Runner, response: dict[str, Any], mechanism: Mechanism) -> None:
        super().__init__(service, response)
        self.mechanism = around(mechanism, self.mechanism)
        self._state = begun(mechanism, halted=response["halted"])
        self._lock = threading.Lock()
        self._attempts: dict[str, _Attempt] = {}
        self._answers: dict[str, tuple[bytes, Plain]] = {}

    @served
    def ask(self, /, request: object = None, *, id: str | None = None, **options: Any) -> Calls[Any]:
        """Ask the postprocessor; the answer is in the request's units. The same `id` gets the same answer."""
        asked = None if request is None else codec.encode_request(request)
        prepared = None if asked is None else (yield from self._prepared(asked))
        public = public_part(self.mechanism, prepared, options)
        message = Ask(public) if prepared is None else prepared.message(public)
        if not self.mechanism.accepts(message):
            raise InvalidRequest(explained(self.mechanism, public, prepared) or "this ask is not accepted")
        own = codec.request_id(id)
        answer = yield Reaction(lambda run: self._reacted(run, own, asked, message))
        if id is None:  # nothing will ask for it again
            self._answers.pop(own, None)
        return Released(answer, prepared, self._grid, self._made_up).in_units()

    def _reacted(self, run: Callable[[Calls[Any]], Any], id: str, asked: dict[str, str] | None, message: Ask) -> Plain:
        """Let the postprocessor react; its memory is kept only if no call failed."""
        body = encode((None if asked is None else asked[EXACT], message.public))
        with self._lock:
            if id in self._answers:
                before, answer = self._answers[id]
                if before != body:
                    raise conflict(id)
                return answer
            if self._state is None:
                raise failed(self.mechanism)
            attempt = self._attempts.setdefault(id, _Attempt(id))
            answer = self._stepped(self._state, attempt, message, run, asked)
            self._answers[id] = body, answer
            del self._attempts[id]
            return answer

    def _stepped(
        self,
        state: State,
        attempt: _Attempt,
        message: Ask,
        run: Callable[[Calls[Any]], Any],
        asked: dict[str, str] | None,
    ) -> Plain:
        numbers = iter(range(1, 10**9))
        inner = InService(
            codec.innermost(self.mechanism), lambda public: run(self._told(attempt, next(numbers), public, asked))
        )
        after: State | None = None
        answer: Plain = None
        broke: Exception | None = None
        try:
            after, answer = around(self.mechanism, inner).step(state, message, SecureCoins(attempt.seed))
        except Exception as error:
            broke = error
        if inner.failure is not None:
            raise inner.failure
        if broke is not None or isinstance(answer, Failed):
            self._state = None
            raise failed(self.mechanism) from broke
        self._state = after
        return answer

    def _told(self, attempt: _Attempt, number: int, public: Plain, asked: dict[str, str] | None) -> Calls[Told]:
        """The answer of the mechanism in the service to one ask of a postprocessor."""
        key = number, encode(public)
        if key not in attempt.told:
            body = {"public": encode_public(public), **({} if asked is None else {"request": asked})}
            try:
                response = yield Call("POST", f"/v1/handles/{self._id}/asks", body, f"{attempt.id}/{number}")
            except CounterpointError as error:
                if getattr(error, "__notes__", ()):
                    error.__notes__ = [f"Repeat the ask with id={attempt.id!r}: it goes on where it was."]
                raise
            attempt.told[key] = read_released(response).answer, bool(response["halted"])
        return attempt.told[key]

    @served
    def error(self, request: object, probability: Number = "0.95", *, simultaneous: bool = False) -> Calls[Any]:
        """How far off the answer would be, where the postprocessors state that; else `NotCovered`."""
        prepared = yield from self._prepared(codec.encode_request(request))
        return error_of(self.mechanism, prepared, probability, simultaneous)

    @property
    @served
    def halted(self) -> Calls[bool]:
        """Whether the code of a postprocessor has failed; it may go on when the mechanism has given its last answer."""
        yield from ()
        return self._state is None

    def _prepared(self, asked: dict[str, str]) -> Calls[PreparedQuery]:
        response = yield Call("POST", f"/v1/handles/{self._id}/preparations", {"request": asked})
        return read_prepared(response)
