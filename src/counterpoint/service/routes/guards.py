"""Which roles may call a route."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from litestar.connection import ASGIConnection
from litestar.exceptions import PermissionDeniedException
from litestar.handlers.base import BaseRouteHandler

from counterpoint.service.identity import Role

Guard: TypeAlias = Callable[[ASGIConnection[Any, Any, Any, Any], BaseRouteHandler], Awaitable[None]]
"""What a route asks before it runs: it refuses, or does nothing. One that is not async would run in a thread."""


def for_roles(*roles: Role) -> Guard:
    """A guard that lets these roles through."""

    async def guard(connection: ASGIConnection[Any, Any, Any, Any], _handler: BaseRouteHandler) -> None:
        if connection.user.role not in roles:
            allowed = " or ".join(role.value for role in roles)
            raise PermissionDeniedException(
                f"this is for the role {allowed}; your key has {connection.user.role.value}"
            )

    return guard
