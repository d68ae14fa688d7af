"""Pages that load themselves again while their reader wants it: the loss and the arriving items stay current.

The browser does it, by a `Refresh` header, so that no script is needed. Forms are left out meanwhile: what is being
typed into one would be lost.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from litestar import Request

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
        """What makes a browser do it."""
        return {"Refresh": str(EVERY)} if self.on else {}


def refreshing(request: Request[Any, Any, Any]) -> Refreshing:
    """What the address of a page says."""
    others = [(name, value) for name, value in request.query_params.multi_items() if name != _NAME]
    on = request.query_params.get(_NAME) == "1"
    query = urlencode(others if on else [*others, (_NAME, "1")])
    return Refreshing(on, f"{request.url.path}?{query}" if query else request.url.path)
