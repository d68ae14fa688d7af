"""Signing in with a key, and out; and the pages' own way to know who calls.

A key is sent in the body of a form, once; after that the browser has a cookie of its own (`service/browser.py`).
"""

from typing import Annotated, Any, TypeAlias

from litestar import Request, Response, get, post
from litestar.connection import ASGIConnection
from litestar.di import NamedDependency
from litestar.enums import RequestEncodingType
from litestar.exceptions import NotAuthorizedException, PermissionDeniedException
from litestar.handlers.base import BaseRouteHandler
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult
from litestar.params import Body

from counterpoint.service.browser import COOKIE, Browsers, BrowserToken, SignedIn
from counterpoint.service.pages.parts.rendering import elsewhere, page, set_cookie
from counterpoint.service.routes.parameters import TheHouse

Form: TypeAlias = Annotated[dict[str, Any], Body(media_type=RequestEncodingType.URL_ENCODED)]
By: TypeAlias = NamedDependency[SignedIn]

SIGNED_OUT = {"signed_out": True}
"""The option of a page that is shown to everyone."""
_LONGEST_KEY = 200


class BrowserAuthentication(AbstractAuthenticationMiddleware):
    """Reads the cookie; without a session that stands, only the page to sign in is shown."""

    async def authenticate_request(self, connection: ASGIConnection[Any, Any, Any, Any]) -> AuthenticationResult:
        """Who is signed in."""
        found = Browsers(connection.app.state.house.identity).signed_in(connection.cookies.get(COOKIE))
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


@post("/sign-in", sync_to_thread=True, include_in_schema=False, opt=SIGNED_OUT)
def sign_in(request: Request[Any, Any, Any], house: TheHouse, data: Form) -> Response[Any]:
    """A cookie for a key."""
    key = str(data.get("key", ""))[:_LONGEST_KEY].strip()
    token = Browsers(house.identity).sign_in(key)
    if token is None:
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
