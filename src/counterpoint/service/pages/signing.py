"""Signing in with a key, and out; and the pages' own way to know who calls.

A key is sent in the body of a form, once; after that the browser has a cookie of its own (`service/browser.py`).
"""

from typing import Annotated, Any, TypeAlias

from litestar import Request, Response, get, post
from litestar.concurrency import sync_to_thread
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from litestar.enums import RequestEncodingType
from litestar.exceptions import NotAuthorizedException, PermissionDeniedException
from litestar.handlers.base import BaseRouteHandler
from litestar.middleware import AbstractAuthenticationMiddleware, ASGIMiddleware, AuthenticationResult
from litestar.params import Body
from litestar.types import ASGIApp, Receive, Scope, Send

from counterpoint.service.browser import COOKIE, Browsers, BrowserToken, SignedIn
from counterpoint.service.limiting import send_problem
from counterpoint.service.pages.parts.rendering import elsewhere, page, set_cookie
from counterpoint.service.routes.parameters import TheHouse
from counterpoint.service.strangers import Strangers, address_of

Form: TypeAlias = Annotated[dict[str, Any], Body(media_type=RequestEncodingType.URL_ENCODED)]
By: TypeAlias = NamedDependency[SignedIn]

SIGNED_OUT = {"signed_out": True}
"""The option of a page that is shown to everyone."""
_LONGEST_KEY = 200
LARGEST_SIGN_IN = 4096
"""How many bytes the form to sign in may have."""


class BrowserAuthentication(AbstractAuthenticationMiddleware):
    """Reads the cookie; without a session that stands, only the page to sign in is shown."""

    async def authenticate_request(self, connection: ASGIConnection[Any, Any, Any, Any]) -> AuthenticationResult:
        """Who is signed in."""
        cookie = connection.cookies.get(COOKIE)
        # The database is asked in a thread: it may wait for a commit, and other requests go on meanwhile.
        found = await sync_to_thread(lambda: Browsers(connection.app.state.house.identity).signed_in(cookie))
        if found is None:
            raise NotAuthorizedException("sign in with a key that stands")
        return AuthenticationResult(user=found.who, auth=found)


def signed_in(request: Request[Any, Any, Any]) -> SignedIn:
    """Who is signed in, for a page."""
    found: SignedIn = request.auth
    return found


async def from_our_form(connection: ASGIConnection[Any, Any, Any, Any], _handler: BaseRouteHandler) -> None:
    """A guard: what is posted comes from a form of these pages, made for this browser."""
    assert isinstance(connection, Request)  # pages have no web sockets
    if connection.method in ("GET", "HEAD"):
        return
    token = BrowserToken.read(connection.cookies.get(COOKIE))
    given = (await connection.form()).get("form_token", "")
    if token is None or not token.signs(str(given)):
        raise PermissionDeniedException("this form was made for another sign-in, or elsewhere: load the page again")


@get("/sign-in", sync_to_thread=True, include_in_schema=False, opt=SIGNED_OUT)
def ask_for_key(request: Request[Any, Any, Any]) -> Response[Any]:
    """The form to sign in, which already has a token of its own: no other site can sign a browser in."""
    token = BrowserToken.fresh("none")
    response = page("sign_in", None, token=token.form(), wrong=False)
    set_cookie(response, token, secure=request.url.scheme == "https")
    return response


class SigningIn(ASGIMiddleware):
    """Holds each address to its number of attempts to sign in, before anything of the form is read."""

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        """Refuse an attempt beyond the limit with 429."""
        strangers: Strangers = scope["litestar_app"].state.strangers
        if scope.get("method") == "POST" and (wait := strangers.wait(address_of(scope))):
            detail = "too many attempts to sign in from this address; send this again later"
            await send_problem(send, 429, detail, wait)
        else:
            await next_app(scope, receive, send)


@post(
    "/sign-in",
    include_in_schema=False,
    opt=SIGNED_OUT,
    middleware=[SigningIn()],
    request_max_body_size=LARGEST_SIGN_IN,
)
async def sign_in(request: Request[Any, Any, Any], house: TheHouse, data: Form) -> Response[Any]:
    """A cookie for a key."""
    key = str(data.get("key", ""))[:_LONGEST_KEY].strip()
    token = await sync_to_thread(lambda: Browsers(house.identity).sign_in(key))
    if token is None:
        request.app.state.strangers.note_failure(address_of(request.scope), "form")
        again = BrowserToken.fresh("none")
        response: Response[Any] = page("sign_in", None, status=401, token=again.form(), wrong=True)
        set_cookie(response, again, secure=request.url.scheme == "https")
        return response
    response = elsewhere("/")
    set_cookie(response, token, secure=request.url.scheme == "https")
    return response


@post("/sign-out", sync_to_thread=True, include_in_schema=False)
def sign_out(request: Request[Any, Any, Any], house: TheHouse, by: By) -> Response[Any]:
    """End the browser's session, here and on record."""
    Browsers(house.identity).sign_out(by.token)
    response = elsewhere("/sign-in")
    set_cookie(response, None, secure=request.url.scheme == "https")
    return response
