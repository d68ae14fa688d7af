"""The forms of a session page (quote, ask once, launch, ask a handle), and the reader of what is typed into them.

Each form has an id of its own, which becomes the request's: a form that is sent twice is charged once. A quote changes
nothing. A refusal is free and says what would fit. A question or mechanism is written as in Python; it is parsed, never
run.

>>> question("count(where='age > 40')")
Count(where='age > 40')
>>> mechanism("Laplace(epsilon=0.5, asks=3)")
Laplace(epsilon=0.5, asks=3)
>>> question("__import__('os').system('ls')")
Traceback (most recent call last):
...
counterpoint.errors.InvalidRequest: write a question such as count(where="age > 40")
"""

import ast
from typing import Any

from litestar import Request, Response, post

from counterpoint.errors import CounterpointError, InvalidRequest, LedgerError
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.numbers import exact
from counterpoint.service.api.inputs import InPath, TheRegistry, for_roles, request_id
from counterpoint.service.pages.access import WORKERS, By, Form
from counterpoint.service.pages.render import elsewhere
from counterpoint.service.pages.session import SessionPlace, place_of, refusal, session_page
from counterpoint.session.handle import Handle, Quote
from counterpoint.session.questions import GivenTerms, release, terms
from counterpoint.session.session import Session
from counterpoint.wire.problems import unknown
from counterpoint.wire.requests import MECHANISMS, REQUESTS, check_size, decode_mechanism, decode_request, fields_of


@post("/sessions/{session:str}", sync_to_thread=True, include_in_schema=False, guards=[for_roles(*WORKERS)])
def act(request: Request[Any, Any, Any], registry: TheRegistry, by: By, session: InPath, data: Form) -> Response[Any]:
    """Carry out what a button asks for."""
    place = place_of(registry, by.who, session)
    form = {key: str(value) for key, value in data.items()}
    try:
        quoted = _act(place, form)
    except LedgerError:
        raise
    except CounterpointError as error:
        refused, status = refusal(error)
        return session_page(request, registry, by, session, status=status, refused=refused, form=form)
    if quoted is not None:
        return session_page(request, registry, by, session, quote=quoted, form=form)
    return elsewhere(f"{place.href}#answers")


def _act(place: SessionPlace, form: dict[str, str]) -> Quote | None:
    """Quote (the quote), or do it (None)."""
    do, session, id = form.get("do", ""), place.session, request_id(form.get("once"))
    if do == "quote a question":
        return session.would_cost(question(form.get("question", "")), **_terms(form))
    if do == "ask":
        text = form.get("question", "")
        session._must_be_open()
        release(session, question(text), terms(**_terms(form)), id, typed=text)
    elif do == "quote a launch":
        return session.would_cost(mechanism(form.get("mechanism", "")))
    elif do == "launch":
        session.launch(mechanism(form.get("mechanism", "")), id=id)
    elif do == "ask a handle":
        text = form.get("question", "").strip()
        _handle(session, form.get("handle", "")).ask(question(text) if text else None, id=id)
    else:
        raise InvalidRequest("a form of this page asks for a quote, an answer or a launch")
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


_LONGEST = 2000
_QUESTION = 'a question such as count(where="age > 40")'
_MECHANISM = "a mechanism such as Laplace(epsilon=0.1, asks=5)"


def question(text: str) -> Any:
    """The request that was typed."""
    said = _said(text, "request", _QUESTION)
    check_size(said)
    return decode_request(said)


def mechanism(text: str) -> Mechanism:
    """The mechanism that was typed."""
    said = _said(text, "mechanism", _MECHANISM)
    check_size(said)
    return decode_mechanism(said)


def _said(text: str, field: str, example: str) -> dict[str, Any]:
    """One call with plain values, as the wire has it; nothing else is understood."""
    try:
        if len(text) > _LONGEST:
            raise ValueError
        return _call(ast.parse(text.strip().removeprefix("cp."), mode="eval").body, field)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidRequest(f"write {example}") from None


def _call(node: ast.expr, field: str) -> dict[str, Any]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError
    name = node.func.id
    listed = MECHANISMS if field == "mechanism" else REQUESTS
    places = fields_of(name) if name in listed else ()
    if len(node.args) > len(places) or any(keyword.arg is None for keyword in node.keywords):
        raise ValueError
    given = [*zip(places, node.args, strict=False), *((str(keyword.arg), keyword.value) for keyword in node.keywords)]
    return {field: name, **{key: _value(value) for key, value in given}}


def _value(node: ast.expr) -> Any:
    """A number, a text, a list of them, or a request inside a request."""
    if isinstance(node, ast.Call):
        return _call(node, "request")
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(part) for part in node.elts]
    return ast.literal_eval(node)
