"""A handle of a served session: the analyst's end of a mechanism that was launched in a service."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NoReturn

from counterpoint.ledger.state import Path
from counterpoint.numbers import Exact, Number
from counterpoint.pictures.picture import Picture
from counterpoint.privacy.loss import Loss
from counterpoint.service.client import reading, saying
from counterpoint.service.client.calls import Call, Calls, Remote, Runner, served
from counterpoint.service.client.not_served import not_served
from counterpoint.service.house import SessionId
from counterpoint.session.handle import series_of


class RemoteHandle(Remote):
    """The analyst's end of one launched mechanism; the calls of a local `Handle`."""

    def __init__(self, service: Runner, said: dict[str, Any]) -> None:
        self._service = service
        self._id = SessionId.read(said["handle"])
        self._grid, self._made_up = Fraction(said["grid"]), bool(said["made_up"])
        self.mechanism = reading.mechanism_of(said)

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
        body: dict[str, Any] = {"options": {name: saying.option(name, given) for name, given in options.items()}}
        if request is not None:
            body["request"] = saying.request(request)
        said = yield Call("POST", f"/v1/handles/{self._id}/asks", body, saying.own(id))
        return reading.released_of(said).in_units()

    @served
    def error(self, request: object, probability: Number = "0.95", *, simultaneous: bool = False) -> Calls[Any]:
        """How far off the answer to this request would be at most, with this probability; nothing is asked."""
        sure = saying.number(probability, "probability")
        body = {"request": saying.request(request), "probability": sure, "simultaneous": simultaneous}
        said = yield Call("POST", f"/v1/handles/{self._id}/errors", body)
        most = Exact(said["exact"])
        return int(most) if said["whole"] else most

    def plot(self, answers: Mapping[int, float | Fraction], probability: Number = "0.95") -> Picture:
        """These answers of a counter as a line, with the band of their error; drawn here, nothing is asked."""
        return series_of(self.mechanism, self._grid, answers, probability, made_up=self._made_up)

    @property
    @served
    def halted(self) -> Calls[bool]:
        """Whether the mechanism has given its last answer."""
        said = yield Call("GET", f"/v1/handles/{self._id}")
        return bool(said["halted"])

    def __getattr__(self, name: str) -> NoReturn:
        not_served("Handle", name)

    def __repr__(self) -> str:
        return f"RemoteHandle({self.mechanism!r} at {str(self._id)!r})"
