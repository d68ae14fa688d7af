"""What the forms of a session page do: quote, ask once, launch, ask a handle.

Each form carries an id of its own, which becomes the request's: a form that is sent twice is charged once. A quote
changes nothing; what was done leads back to the page, so that a reload does not repeat it; a refusal is free, and is
shown with what would fit.
"""

from typing import Any

from litestar import Request, Response, post

from counterpoint.errors import CounterpointError, InvalidRequest, LedgerError
from counterpoint.numbers import exact
from counterpoint.service.house import unknown
from counterpoint.service.pages.parts import typed
from counterpoint.service.pages.parts.rendering import elsewhere
from counterpoint.service.pages.session import SessionPlace, place_of, refusal, session_page
from counterpoint.service.pages.sight import WORKERS
from counterpoint.service.pages.signing import By, Form
from counterpoint.service.routes.bodies import request_id
from counterpoint.service.routes.guards import for_roles
from counterpoint.service.routes.parameters import InPath, TheHouse
from counterpoint.session.answering.questions import GivenTerms
from counterpoint.session.handle import Handle
from counterpoint.session.quote import Quote
from counterpoint.session.session import Session


@post("/sessions/{session:str}", sync_to_thread=True, include_in_schema=False, guards=[for_roles(*WORKERS)])
def act(request: Request[Any, Any, Any], house: TheHouse, by: By, session: InPath, data: Form) -> Response[Any]:
    """Do what the button says."""
    place = place_of(house, by.who, session)
    form = {key: str(value) for key, value in data.items()}
    try:
        quoted = _act(place, form)
    except LedgerError:
        raise
    except CounterpointError as error:
        refused, status = refusal(error)
        return session_page(request, house, by, session, status=status, refused=refused, form=form)
    if quoted is not None:
        return session_page(request, house, by, session, quote=quoted, form=form)
    return elsewhere(f"{place.href}#answers")


def _act(place: SessionPlace, form: dict[str, str]) -> Quote | None:
    """Quote (the quote), or do it (None)."""
    do, session, id = form.get("do", ""), place.session, request_id(form.get("once"))
    if do == "quote a question":
        return session.would_cost(typed.question(form.get("question", "")), **_terms(form))
    if do == "ask":
        session.ask(typed.question(form.get("question", "")), id=id, **_terms(form))
    elif do == "quote a launch":
        return session.would_cost(typed.mechanism(form.get("mechanism", "")))
    elif do == "launch":
        session.launch(typed.mechanism(form.get("mechanism", "")), id=id)
    elif do == "ask a handle":
        text = form.get("question", "").strip()
        _handle(session, form.get("handle", "")).ask(typed.question(text) if text else None, id=id)
    else:
        raise InvalidRequest("a form of this page says quote, ask or launch")
    return None


def _terms(form: dict[str, str]) -> GivenTerms:
    amount = form.get("amount", "").strip()
    if form.get("terms") == "error":
        return {"error": exact(amount, "the error")}
    return {"epsilon": exact(amount, "epsilon")}


def _handle(session: Session, text: str) -> Handle:
    found = {str(handle.path[-1]): handle for handle in session.handles}.get(text)
    if found is None:
        raise unknown(text)
    return found
