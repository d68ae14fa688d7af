"""What holds for every request and every response, of the service and of the witness, whatever route it takes.

No response is kept by a cache or read as another type than it says. A body that is not JSON is an error of its caller.

>>> headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
>>> dict(safe_headers([(b"content-type", b"text/plain")])) == {
...     b"content-type": b"text/plain", **{name.encode(): value.encode() for name, value in headers.items()}
... }
True
"""

from collections.abc import Iterable
from typing import Any

from litestar import Request
from litestar.exceptions import ClientException
from litestar.types import Message, Scope

PROBLEM = "application/problem+json"
"""How refusals and errors are sent."""
ASSETS = "/assets/"
"""Where the style sheet and the icon are, the only responses that a browser may keep."""
_CACHING, _SNIFFING = b"cache-control", b"x-content-type-options"


def safe_headers(headers: Iterable[tuple[bytes, bytes]], *, may_be_kept: bool = False) -> list[tuple[bytes, bytes]]:
    """These headers with those that every response has."""
    ours = {_SNIFFING} if may_be_kept else {_SNIFFING, _CACHING}
    kept = [(name, value) for name, value in headers if name.lower() not in ours]
    return [*kept, (_SNIFFING, b"nosniff"), *([] if may_be_kept else [(_CACHING, b"no-store")])]


async def harden(message: Message, scope: Scope) -> None:
    """A hook of the application, before anything is sent: also errors that no route has made pass here."""
    if message["type"] == "http.response.start":
        asset = str(scope["path"]).startswith(ASSETS) and message["status"] == 200
        message["headers"] = safe_headers(message.get("headers", ()), may_be_kept=asset)


class StrictRequest(Request[Any, Any, Any]):
    """A request whose body may be any bytes."""

    async def json(self) -> Any:
        """The body, read as JSON; 400 for one that is nested too deeply for the reader, or is not UTF-8."""
        try:
            return await super().json()
        except RecursionError:
            raise ClientException("the body is nested too deeply") from None
        except UnicodeDecodeError:
            raise ClientException("the body is not UTF-8") from None
