"""Sessions: launch, ask, quote, delegate, partition; their loss, certificate, history and timeline."""

from typing import Annotated, Literal, TypeAlias

from litestar import Response, Router, get, post
from litestar.params import JSONBody, QueryParameter

import counterpoint as cp
from counterpoint.encoding import plain_number
from counterpoint.errors import InvalidRequest
from counterpoint.service.api.inputs import (
    After,
    Caller,
    ChargeBody,
    DelegationBody,
    InPath,
    InQuery,
    Json,
    LaunchBody,
    Limit,
    LossBody,
    PartBody,
    PartitionBody,
    QuestionBody,
    QuoteBody,
    RequestId,
    SettlementBody,
    SQLBody,
    TermsBody,
    TheRegistry,
    for_roles,
    of,
    page_of,
)
from counterpoint.service.identity import Principal, Role
from counterpoint.service.limits import FREE
from counterpoint.service.registry import Registry
from counterpoint.service.views import given_json, handle_json, partition_json, placed_json, session_json
from counterpoint.session.charges import Reservation
from counterpoint.session.handle import Handle
from counterpoint.session.questions import presented, release, terms
from counterpoint.session.session import Session
from counterpoint.session.subsessions import Partition
from counterpoint.session.timeline import timeline_of
from counterpoint.wire.documents import (
    answer_json,
    certificate_json,
    fact_json,
    loss_json,
    plain,
    quote_json,
    receipt_json,
    reserved_json,
    timeline_json,
)
from counterpoint.wire.problems import SessionId, unknown
from counterpoint.wire.requests import MOST_EVENTS, PAGE, decode_loss, decode_losses, decode_mechanism, decode_request

WORKERS = (Role.CUSTODIAN, Role.ANALYST)


@get("/", summary="The sessions that you may work in", guards=[for_roles(*WORKERS)], sync_to_thread=True)
def listed(registry: TheRegistry, who: Caller, after: After = 0, limit: Limit = PAGE) -> Response[list[Json]]:
    """A custodian's are the whole data sets; an analyst's those that were granted. In pages; `Link` names the next."""
    if who.role is Role.CUSTODIAN:
        own = [(name, registry.data_set(name).session()) for name in registry.names]
    else:
        given = [(name, one) for name in registry.names for one in registry.granted(name)]
        own = [(name, one.session) for name, one in given if one.grant.to == who.name]
    page = [session_json(*one) for one in own[after : after + limit]]
    return page_of("/v1/sessions", page, len(own), after, limit)


@get("/{session:str}", summary="What was lost, what is left, what was launched", sync_to_thread=True)
def shown(registry: TheRegistry, who: Caller, session: InPath, after: After = 0, limit: Limit = PAGE) -> Json:
    """Reading changes nothing. Auditors do not see which handles have halted: that may follow from answers.

    What was launched comes in pages: `next` is where the page after this one begins.
    """
    name, found = to_read(registry, who, session)
    answers = who.role is not Role.AUDITOR
    children, following = found.page_of_children(after, limit)
    handles = [handle_json(name, one, answers=answers) for one in children if isinstance(one, Handle)]
    given = [given_json(name, one) for one in children if not isinstance(one, Handle)]
    return {**session_json(name, found), "handles": handles, "given": given, "next": following}


@get("/{session:str}/certificate", summary="Why the loss is what it is", sync_to_thread=True)
def certificate(registry: TheRegistry, who: Caller, session: InPath, after: After = 0, limit: Limit = PAGE) -> Json:
    """The derivation, with the theorem of each step. Launches come in pages; `next` begins the next one."""
    page, following = to_read(registry, who, session)[1].page_of_certificate(after, limit)
    return {**certificate_json(page), "next": following}


@get("/{session:str}/history", summary="What was done, by whom and when", sync_to_thread=True)
def history(
    registry: TheRegistry,
    who: Caller,
    session: InPath,
    after: After = 0,
    limit: Limit = PAGE,
) -> Json:
    """Public facts, in order; `next` is where the page after this one begins."""
    name, found = to_read(registry, who, session)
    facts = found.history
    page = facts[after : after + limit]
    lines = [fact_json(name, number, fact) for number, fact in enumerate(page, start=after + 1)]
    return {"facts": lines, "next": after + limit if after + limit < len(facts) else None}


@post("/{session:str}/launches", summary="Launch a mechanism", guards=[for_roles(*WORKERS)], sync_to_thread=True)
def launch(
    registry: TheRegistry, who: Caller, session: InPath, data: JSONBody[LaunchBody], request_id: RequestId
) -> Json:
    """Pay for a mechanism and start it. The same `Idempotency-Key` finds it again, and nothing more is charged."""
    name, found = _work(registry, who, session)
    made = found.launch(decode_mechanism(data.mechanism), of=of(data.of), id=request_id)
    return handle_json(name, made)


@post("/{session:str}/questions", summary="Ask once", guards=[for_roles(*WORKERS)], sync_to_thread=True)
def ask(
    registry: TheRegistry, who: Caller, session: InPath, data: JSONBody[QuestionBody], request_id: RequestId
) -> Json:
    """Launch what answers this request on these terms, and ask it: one charge and one answer for one key."""
    return answered(_work(registry, who, session)[1], decode_request(data.request), data, request_id)


@post("/{session:str}/sql", summary="Ask once, in SQL", guards=[for_roles(*WORKERS)], sync_to_thread=True)
def sql(registry: TheRegistry, who: Caller, session: InPath, data: JSONBody[SQLBody], request_id: RequestId) -> Json:
    """What a SELECT of aggregates says, compiled to the request that Python would make; else as a question."""
    return answered(_work(registry, who, session)[1], cp.sql(data.text), data, request_id)


@post(
    "/{session:str}/quotes",
    summary="What it would cost",
    guards=[for_roles(*WORKERS)],
    status_code=200,
    sync_to_thread=True,
    opt=FREE,
)
def quote(registry: TheRegistry, who: Caller, session: InPath, data: JSONBody[QuoteBody]) -> Json:
    """By the code that would admit it; nothing happens."""
    _, found = _work(registry, who, session)
    if (data.mechanism is None) == (data.request is None):
        raise InvalidRequest("give either a mechanism or a request with its terms")
    if data.mechanism is not None:
        quoted = found.would_cost(decode_mechanism(data.mechanism), of=of(data.of))
    else:
        quoted = found.would_cost(decode_request(data.request), **data.given())
    return quote_json(quoted)


@post("/{session:str}/delegations", summary="Delegate a budget", guards=[for_roles(*WORKERS)], sync_to_thread=True)
def delegate(
    registry: TheRegistry, who: Caller, session: InPath, data: JSONBody[DelegationBody], request_id: RequestId
) -> Json:
    """A session inside this one; what it leaves stays reserved."""
    name, found = _work(registry, who, session)
    made = found.delegate(decode_loss(data.within), delta=data.delta, sampled=data.sampled, id=request_id)
    return session_json(name, made)


@post(
    "/{session:str}/charges",
    summary="Charge a release made elsewhere",
    guards=[for_roles(*WORKERS)],
    sync_to_thread=True,
)
def charge(
    registry: TheRegistry, who: Caller, session: InPath, data: JSONBody[ChargeBody], request_id: RequestId
) -> Json:
    """Pay for what another tool released about the same data: by its custodian, or by an analyst in a grant of theirs.

    The loss is declared, not derived, and the certificate says so. The same `Idempotency-Key` pays once.
    """
    name, found = _work(registry, who, session)
    losses = decode_losses(data.loss)
    return handle_json(name, found.charge(losses, data.what, unit=data.unit, delta=data.delta, id=request_id))


@post(
    "/{session:str}/reservations",
    summary="Reserve for a release made elsewhere",
    guards=[for_roles(*WORKERS)],
    sync_to_thread=True,
)
def reserve(
    registry: TheRegistry, who: Caller, session: InPath, data: JSONBody[ChargeBody], request_id: RequestId
) -> Json:
    """Charge at once what a release costs at most. It is settled under the same `Idempotency-Key`."""
    found = _work(registry, who, session)[1]
    return {"reserved": loss_json(_reserved(found, data, request_id).loss), "id": request_id}


@post(
    "/{session:str}/settlements",
    summary="Settle a reservation",
    guards=[for_roles(*WORKERS)],
    sync_to_thread=True,
)
def settle(
    registry: TheRegistry, who: Caller, session: InPath, data: JSONBody[SettlementBody], request_id: RequestId
) -> Json:
    """Charge what the release cost, and return the rest where a theorem allows it; under the key of the reservation."""
    name, found = _work(registry, who, session)
    reservation = _reserved(found, data.reserved, request_id)
    return handle_json(name, reservation.settle(decode_losses(data.loss), delta=data.delta))


def _reserved(found: Session, data: ChargeBody, id: str) -> Reservation:
    """The reservation with this id, which is made if there is none."""
    return found.reserve(decode_losses(data.loss), data.what, unit=data.unit, delta=data.delta, id=id)


@post(
    "/{session:str}/admissions",
    summary="How many more launches fit",
    guards=[for_roles(*WORKERS)],
    status_code=200,
    sync_to_thread=True,
    opt=FREE,
)
def would_admit(registry: TheRegistry, who: Caller, session: InPath, data: JSONBody[LossBody]) -> Json:
    """How many launches of this loss the budget admits, one after another; nothing happens."""
    return {"admits": _work(registry, who, session)[1].would_admit(decode_loss(data.loss))}


@post("/{session:str}/partitions", summary="Partition the data", guards=[for_roles(*WORKERS)], sync_to_thread=True)
def partition(
    registry: TheRegistry, who: Caller, session: InPath, data: JSONBody[PartitionBody], request_id: RequestId
) -> Json:
    """Sessions for the parts of the data, all of them for the price of k."""
    name, found = _work(registry, who, session)
    within = [decode_loss(one) for one in data.within] if isinstance(data.within, list) else decode_loss(data.within)
    parts = found.partition(data.by, data.k, within=within, delta_total=data.delta_total, id=request_id)
    return partition_json(name, parts)


@post("/{session:str}/parts", summary="One part of a partition", guards=[for_roles(*WORKERS)], sync_to_thread=True)
def part(registry: TheRegistry, who: Caller, session: InPath, data: JSONBody[PartBody]) -> Json:
    """The session of the part with this key; a part that was never looked at may cost its delta."""
    found = registry.reached(who, session)
    if not isinstance(found, Partition):
        raise unknown(session)
    made = found[data.value] if data.within is None else found.part(data.value, within=decode_loss(data.within))
    return session_json(SessionId.read(session).data_set, made)


@get("/{session:str}/place", summary="What lives at an id", guards=[for_roles(*WORKERS)], sync_to_thread=True)
def place(registry: TheRegistry, who: Caller, session: InPath) -> Json:
    """A session, a handle or a partition, whichever it is."""
    return placed_json(SessionId.read(session).data_set, registry.reached(who, session))


@get(
    "/{session:str}/receipts",
    summary="The receipt of an answer, again",
    guards=[for_roles(*WORKERS)],
    sync_to_thread=True,
)
def receipt(registry: TheRegistry, who: Caller, session: InPath, id: InQuery) -> Json:
    """For the answer that you got under this id: a signed receipt, and what opens the answer in it to others."""
    return receipt_json(id, *_work(registry, who, session)[1].receipt(id))


def answered(found: Session, request: object, data: TermsBody, id: str) -> Json:
    """Ask a question on these terms: one charge, one answer and one receipt for one id."""
    found._must_be_open()
    on = terms(**data.given())
    provenance = release(found, request, on, id)
    answer = answer_json(presented(request, provenance, on.suppress), provenance)
    return {**answer, **receipt_json(id, *found._engine.receipt(found._path, id))}


def _work(registry: Registry, who: Principal, text: str) -> tuple[str, Session]:
    """The session of this id, to launch and ask in."""
    found = registry.reached(who, text)
    if not isinstance(found, Session):
        raise unknown(text)
    return SessionId.read(text).data_set, found


def to_read(registry: Registry, who: Principal, text: str) -> tuple[str, Session]:
    """The session of this id, to read public facts of: an auditor reads every one."""
    if who.role is not Role.AUDITOR:
        return _work(registry, who, text)
    id = SessionId.read(text)
    found = registry.data_set(id.data_set).session().at(id.path)
    if not isinstance(found, Session):
        raise unknown(text)
    return id.data_set, found


SESSION_ROUTES = Router(
    "/v1/sessions",
    route_handlers=[
        listed,
        shown,
        place,
        certificate,
        history,
        receipt,
        launch,
        ask,
        sql,
        quote,
        delegate,
        charge,
        reserve,
        settle,
        would_admit,
        partition,
        part,
    ],
)

FARTHEST = 10_000
"""The greatest distance at which a loss is read: what an account says of it grows with the distance."""
Distance: TypeAlias = Annotated[int, QueryParameter(ge=0, le=FARTHEST)]
Events: TypeAlias = Annotated[int, QueryParameter(ge=1, le=MOST_EVENTS)]
Axis: TypeAlias = Annotated[Literal["order", "time"], QueryParameter()]


@get("/{session:str}/loss", summary="What was lost between data that differ in several units", sync_to_thread=True)
def loss_at(registry: TheRegistry, who: Caller, session: InPath, distance: Distance = 1) -> Json:
    """A reading, at a distance fixed in advance: each launch counts with its own group loss.

    `reserved` lists what was delegated: the loss of the session counts its charge, and this reading what was launched.
    """
    read = to_read(registry, who, session)[1]
    beside = [reserved_json(each) for each in read.reserved]
    return {**loss_json(read.loss_at(distance=distance)), "reserved": beside}


@post(
    "/{session:str}/epsilons",
    summary="The least epsilon that keeps an error",
    guards=[for_roles(*WORKERS)],
    status_code=200,
    sync_to_thread=True,
    opt=FREE,
)
def epsilon_for(registry: TheRegistry, who: Caller, session: InPath, data: JSONBody[QuestionBody]) -> Json:
    """By the law of the noise and the declaration; nothing happens."""
    least = to_read(registry, who, session)[1].epsilon_for(decode_request(data.request), **data.given())
    return {"epsilon": plain(least), "exact": plain_number(least)}


@get("/{session:str}/timeline", summary="The session as a timeline", guards=[for_roles(*WORKERS)], sync_to_thread=True)
def timeline(
    registry: TheRegistry,
    who: Caller,
    session: InPath,
    by: Axis = "order",
    *,
    after: After = 0,
    limit: Events = 1_000,
) -> Json:
    """The loss under its budget and a lane for each launch, as values to be drawn. Public facts only.

    Events come in pages: `next` is where the next page begins.
    """
    return timeline_json(timeline_of(to_read(registry, who, session)[1], by), after, limit)


READING_ROUTES = Router("/v1/sessions", route_handlers=[loss_at, epsilon_for, timeline])
