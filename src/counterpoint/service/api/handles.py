"""Handles: ask a launched mechanism. An ask costs nothing more."""

from fractions import Fraction

from litestar import Router, get, post
from litestar.params import JSONBody

from counterpoint.encoding import plain_number
from counterpoint.errors import InvalidRequest
from counterpoint.service.api.inputs import (
    AskBody,
    Caller,
    ErrorBody,
    InPath,
    Json,
    RequestBody,
    RequestId,
    TheRegistry,
    for_roles,
)
from counterpoint.service.identity import Principal, Role
from counterpoint.service.limits import FREE
from counterpoint.service.registry import Registry
from counterpoint.service.views import handle_json
from counterpoint.session.handle import Handle
from counterpoint.wire.documents import plain, prepared_json, raw_json, receipt_json, released_json
from counterpoint.wire.problems import SessionId, unknown
from counterpoint.wire.requests import decode_public, decode_request

WORKERS = (Role.CUSTODIAN, Role.ANALYST)


@get("/{handle:str}", summary="A launched mechanism", guards=[for_roles(*WORKERS)], sync_to_thread=True)
def shown(registry: TheRegistry, who: Caller, handle: InPath) -> Json:
    """What it is, what it cost, and whether it has halted."""
    name, found = _found(registry, who, handle)
    return handle_json(name, found)


@post("/{handle:str}/asks", summary="Ask", guards=[for_roles(*WORKERS)], sync_to_thread=True)
def ask(registry: TheRegistry, who: Caller, handle: InPath, data: JSONBody[AskBody], request_id: RequestId) -> Json:
    """The answer, in the request's units. The same `Idempotency-Key` gets the same answer, for ever."""
    _, found = _found(registry, who, handle)
    request = None if data.request is None else decode_request(data.request)
    if data.public is None:
        said = released_json(found._release(request, request_id, data.options))
    else:
        said = _postprocessed(found, request, data, request_id)
    return {**said, **receipt_json(request_id, *found._receipt(request_id))}


def _postprocessed(found: Handle, request: object, data: AskBody, id: str) -> Json:
    """What a postprocessor in the client asks: with a public part of its own, and it sees whether that was the last."""
    if data.options:
        raise InvalidRequest("give either options or the public part that a postprocessor made of them")
    found._session._must_be_open()
    prepared = None if request is None else found._source.prepare(request)
    released = found._asked(prepared, decode_public(data.public), id)
    return {**raw_json(released), "halted": found.halted}


@post(
    "/{handle:str}/preparations",
    summary="What is public about a request",
    guards=[for_roles(*WORKERS)],
    status_code=200,
    sync_to_thread=True,
    opt=FREE,
)
def prepare(registry: TheRegistry, who: Caller, handle: InPath, data: JSONBody[RequestBody]) -> Json:
    """From the declaration alone: no data is read, and nothing is asked. A postprocessor reads its answers by it."""
    _, found = _found(registry, who, handle)
    return prepared_json(found._source.prepare(decode_request(data.request)))


@post(
    "/{handle:str}/errors",
    summary="How far off an answer would be",
    guards=[for_roles(*WORKERS)],
    status_code=200,
    sync_to_thread=True,
    opt=FREE,
)
def error(registry: TheRegistry, who: Caller, handle: InPath, data: JSONBody[ErrorBody]) -> Json:
    """By the law of the noise and the declaration; nothing is asked."""
    _, found = _found(registry, who, handle)
    most = found.error(decode_request(data.request), data.probability, simultaneous=data.simultaneous)
    return {"error": plain(Fraction(most)), "exact": plain_number(Fraction(most)), "whole": isinstance(most, int)}


def _found(registry: Registry, who: Principal, text: str) -> tuple[str, Handle]:
    found = registry.reached(who, text)
    if not isinstance(found, Handle):
        raise unknown(text)
    return SessionId.read(text).data_set, found


ROUTES = Router("/v1/handles", route_handlers=[shown, ask, prepare, error])
