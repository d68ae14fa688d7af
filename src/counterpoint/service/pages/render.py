"""A page as a response: its template, and headers that keep it private.

Templates escape whatever they are given. The content security policy allows our style sheet and nothing else: no
script, no inline style, no frame, no form to another site. A page can reload itself by a `Refresh` header while its
reader wants that; it then leaves out its forms, where typing would be lost.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from litestar import MediaType, Request, Response
from litestar.response import Redirect
from markupsafe import Markup

from counterpoint.coins.keystream import fresh
from counterpoint.display.markup import SHEET
from counterpoint.service.identity import COOKIE, LASTS, BrowserToken, Role, SignedIn
from counterpoint.service.pages import words

EVERY = 10
"""After how many seconds a page is loaded again."""
_NAME = "live"


@dataclass(frozen=True, slots=True)
class Refreshing:
    """Whether a page is loaded again and again, and the address that switches it."""

    on: bool
    switch: str

    @property
    def headers(self) -> dict[str, str]:
        """The headers that make a browser reload the page."""
        return {"Refresh": str(EVERY)} if self.on else {}


def refreshing(request: Request[Any, Any, Any]) -> Refreshing:
    """Whether the address of a page asks for it to be kept current."""
    others = [(name, value) for name, value in request.query_params.multi_items() if name != _NAME]
    on = request.query_params.get(_NAME) == "1"
    query = urlencode(others if on else [*others, (_NAME, "1")])
    return Refreshing(on, f"{request.url.path}?{query}" if query else request.url.path)


POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""What every page is sent with."""

_PLACES: tuple[tuple[str, str, tuple[Role, ...]], ...] = (
    ("/", "Data sets", tuple(Role)),
    ("/history", "History", (Role.CUSTODIAN, Role.ANALYST, Role.AUDITOR)),
    ("/grants", "Grants", (Role.CUSTODIAN, Role.AUDITOR)),
    ("/people", "People", (Role.CUSTODIAN,)),
    ("/ledger", "Ledger", (Role.CUSTODIAN, Role.AUDITOR)),
)


def page(
    template: str,
    by: SignedIn | None,
    *,
    here: str = "",
    status: int = 200,
    live: Refreshing | None = None,
    **values: object,
) -> Response[str]:
    """A page, for who is signed in; it is loaded again and again, if its reader wants that."""
    places = [(href, name) for href, name, roles in _PLACES if by is not None and by.who.role in roles]
    text = _templates().get_template(f"{template}.html")
    frame = {
        "who": None if by is None else by.who,
        "form_token": "" if by is None else by.token.form(),
        "places": places,
        "here": here,
        "now": time.time(),
        "once": fresh(16).hex(),
        "live": live,
        "every": EVERY,
    }
    made = text.render(frame | values)
    headers = HEADERS if live is None else HEADERS | live.headers
    return Response(made, status_code=status, media_type=MediaType.HTML, headers=headers)


def download(text: str, name: str, media_type: str) -> Response[str]:
    """A file to keep."""
    return Response(text, media_type=media_type, headers=attached(name))


def attached(name: str) -> dict[str, str]:
    """The headers of a file that is kept under a name of ours."""
    return {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}


def elsewhere(path: str) -> Redirect:
    """Redirect to another page, so that a reload does not post again."""
    return Redirect(path, status_code=303, headers=HEADERS)


def set_cookie(response: Response[Any], token: BrowserToken | None, *, secure: bool) -> None:
    """Give a browser its token, or take it away."""
    response.set_cookie(
        COOKIE,
        "" if token is None else token.cookie(),
        max_age=0 if token is None else LASTS,
        httponly=True,
        samesite="strict",
        secure=secure,
        path="/",
    )


def drawn(markup: str) -> Markup:
    """Markup of our own pictures, which is escaped already."""
    return Markup(markup)


@cache
def sheet() -> str:
    """The style sheet of the pages and of the pictures in them."""
    own = files("counterpoint.service.pages").joinpath("static/style.css").read_text(encoding="utf-8")
    return f"{own}\n{SHEET}\n"


@cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("counterpoint.service.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown: Mapping[str, Any] = {
        name: getattr(words, name) for name in ("figure", "ago", "ahead", "day", "moment", "clock")
    }
    made.filters.update(shown)
    return made
