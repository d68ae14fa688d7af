"""The dashboard's routes, and how errors look there."""

import logging
import traceback
from typing import Any

from litestar import MediaType, Request, Response, Router, get
from litestar.di import Provide
from litestar.exceptions import HTTPException, NotAuthorizedException
from litestar.middleware import DefineMiddleware

from counterpoint.errors import CounterpointError
from counterpoint.service.identity import SignedIn
from counterpoint.service.limits import Limiting
from counterpoint.service.pages import (
    access,
    answers,
    data,
    explain,
    forms,
    grants,
    history,
    index,
    ledger,
    people,
    session,
)
from counterpoint.service.pages.render import HEADERS, elsewhere, page, sheet
from counterpoint.wire.problems import problem

_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 28 24"><path d="M2 18h6v-6h7V6h11" fill="none" '
    'stroke="#1d5fa6" stroke-width="3"/></svg>'
)

NOT_FOUND = 404
_LONGEST_PATH = 80


@get("/assets/style.css", sync_to_thread=False, include_in_schema=False, opt=access.SIGNED_OUT)
def style() -> Response[str]:
    """The style sheet."""
    return Response(sheet(), media_type=MediaType.CSS, headers={**HEADERS, "Cache-Control": "max-age=300"})


@get("/assets/icon.svg", sync_to_thread=False, include_in_schema=False, opt=access.SIGNED_OUT)
def icon() -> Response[str]:
    """The sign of the tab."""
    return Response(_ICON, media_type="image/svg+xml", headers={**HEADERS, "Cache-Control": "max-age=86400"})


def _refused(request: Request[Any, Any, Any], error: CounterpointError) -> Response[Any]:
    said = problem(error)
    return _problem(request, said["title"], said["detail"], said["status"])


def _http(request: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    if isinstance(error, NotAuthorizedException):
        return elsewhere("/sign-in")
    return _problem(request, "This cannot be shown", error.detail, error.status_code)


def _fault(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    """A fault of ours: what went wrong may quote anything, so the log has its kind and place, and the page nothing."""
    place = "".join(traceback.format_tb(error.__traceback__))
    logging.getLogger("counterpoint.service").error("a page failed: %s\n%s", type(error).__name__, place)
    return _problem(request, "The service failed", "See its log.", 500)


def _problem(request: Request[Any, Any, Any], title: str, detail: str, status: int) -> Response[Any]:
    if status == NOT_FOUND:
        return not_found(request)
    found = request.scope.get("auth")
    by = found if isinstance(found, SignedIn) else None
    return page("problem", by, status=status, title=title, detail=detail)


def not_found(request: Request[Any, Any, Any], status: int = NOT_FOUND) -> Response[Any]:
    """The page for an unknown address, and for what is another's: the same words for both.

    An unknown address looks up no principal: the page is the same for everyone.
    """
    found = request.scope.get("auth")
    by = found if isinstance(found, SignedIn) else None
    return page("not_found", by, status=status, path=request.url.path[:_LONGEST_PATH])


def wants_page(request: Request[Any, Any, Any]) -> bool:
    """Whether a browser looks at an address, rather than a program.

    >>> from litestar.testing import RequestFactory
    >>> make = RequestFactory().get
    >>> [wants_page(make("/", headers={"Accept": said})) for said in ("text/html,*/*;q=0.8", "*/*", "application/json")]
    [True, False, False]
    """
    return "text/html" in request.headers.get("accept", "")


ROUTES = Router(
    "/",
    route_handlers=[
        style,
        icon,
        access.ask_for_key,
        access.sign_in,
        access.sign_out,
        index.index,
        session.show,
        explain.show,
        forms.act,
        grants.show,
        grants.as_csv,
        grants.grant,
        grants.revoke,
        grants.recount,
        people.show,
        people.add,
        people.new_key,
        people.end,
        people.end_key,
        history.show,
        ledger.show,
        ledger.verify,
        ledger.record,
        data.show,
        data.look,
        data.refresh,
        data.reopen,
        data.recover,
        answers.receipt,
    ],
    middleware=[DefineMiddleware(access.BrowserAuthentication, exclude_from_auth_key="signed_out"), Limiting()],
    guards=[access.from_our_form],
    dependencies={"by": Provide(access.signed_in, sync_to_thread=False)},
    exception_handlers={CounterpointError: _refused, HTTPException: _http, Exception: _fault},
    opt={"exclude_from_auth": True},
)
"""All pages. The API's authentication leaves them out; `BrowserAuthentication` covers them, but for signing in."""
