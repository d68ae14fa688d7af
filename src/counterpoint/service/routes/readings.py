"""Readings of a session that take some computing: its loss at a distance, the epsilon for an error, its score."""

import dataclasses
from typing import Annotated, Literal, TypeAlias

from litestar import Router, get, post
from litestar.params import JSONBody, QueryParameter

from counterpoint.encoding import plain_number
from counterpoint.service import wire
from counterpoint.service.limiting import FREE
from counterpoint.service.routes.bodies import Json, QuestionBody
from counterpoint.service.routes.guards import for_roles
from counterpoint.service.routes.parameters import Caller, InPath, TheHouse
from counterpoint.service.routes.sessions import WORKERS, to_read
from counterpoint.service.showing import loss_shown, plain
from counterpoint.session.showing.scoring import score_of

FARTHEST = 10_000
"""The greatest distance at which a loss is read: what an account says of it grows with the distance."""

Distance: TypeAlias = Annotated[int, QueryParameter(ge=0, le=FARTHEST)]
Axis: TypeAlias = Annotated[Literal["order", "time"], QueryParameter()]


@get("/{session:str}/loss", summary="What was lost between data that differ in several units", sync_to_thread=True)
def loss_at(house: TheHouse, who: Caller, session: InPath, distance: Distance = 1) -> Json:
    """A reading, at a distance fixed in advance: each launch counts with its own group loss."""
    return loss_shown(to_read(house, who, session)[1].loss_at(distance=distance))


@post(
    "/{session:str}/epsilons",
    summary="The least epsilon that keeps an error",
    guards=[for_roles(*WORKERS)],
    status_code=200,
    sync_to_thread=True,
    opt=FREE,
)
def epsilon_for(house: TheHouse, who: Caller, session: InPath, data: JSONBody[QuestionBody]) -> Json:
    """By the law of the noise and the declaration; nothing happens."""
    least = to_read(house, who, session)[1].epsilon_for(wire.request(data.request), **data.given())
    return {"epsilon": plain(least), "exact": plain_number(least)}


@get("/{session:str}/score", summary="The session as a score", guards=[for_roles(*WORKERS)], sync_to_thread=True)
def score(house: TheHouse, who: Caller, session: InPath, by: Axis = "order") -> Json:
    """The loss under its budget and a lane for each launch, as values to be drawn. Public facts only."""
    return dataclasses.asdict(score_of(to_read(house, who, session)[1], by))


ROUTES = Router("/v1/sessions", route_handlers=[loss_at, epsilon_for, score])
