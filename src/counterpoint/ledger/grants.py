"""Who acts, and what they were granted: a session that was given to a principal, for a while, for some mechanisms.

A grant is a delegated session whose public state names the principal. It is checked in the transaction that records a
request, against the row as it is there: a revocation stops the next launch and the next ask, in every process at once.
What was launched stays charged. Whether a request is allowed follows from public facts alone. That a caller is who they
say is checked outside, before a session is handed out.

>>> grant = Grant("ann", until=None, mechanisms=("Laplace",))
>>> grant.check(("SparseVector",), now=0)
Traceback (most recent call last):
...
counterpoint.errors.NotGranted: 'ann' was granted Laplace here, not SparseVector
"""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from counterpoint.encoding import Tagged, Value
from counterpoint.errors import InvalidParameter, NotGranted, shown
from counterpoint.mechanisms.mechanism import Mechanism

_LONGEST = 64
_ALSO = frozenset("-_.@+")

Path = tuple[int | str, ...]
"""Where a mechanism lives (`state.Path`)."""


class Grant(Tagged, Value, frozen=True):
    """To whom a session was given, until when (in seconds since 1970), and which mechanisms may be launched in it."""

    to: str
    until: int | None = None
    mechanisms: tuple[str, ...] | None = None
    revoked: bool = False

    def must_stand(self) -> None:
        """`NotGranted` once it was revoked."""
        if self.revoked:
            raise NotGranted(
                f"the grant of {self.to!r} was revoked: what was launched in it stays charged and answers no more"
            )

    def check(self, kinds: tuple[str, ...], now: int) -> None:
        """`NotGranted` if no mechanism of these kinds may be launched here now, or (no kinds) nothing may be asked."""
        self.must_stand()
        if self.until is not None and now >= self.until:
            raise NotGranted(f"the grant of {self.to!r} has expired; its custodian can grant another")
        if kinds and self.mechanisms is not None and not set(kinds) & set(self.mechanisms):
            raise NotGranted(f"{self.to!r} was granted {', '.join(self.mechanisms)} here, not {kinds[0]}")


class Acting(msgspec.Struct, frozen=True):
    """Whose request it is, and the granted sessions that it is made in, the innermost last."""

    who: str = ""
    under: tuple[Path, ...] = ()

    def own(self, id: str) -> str:
        """The id of a request in the ledger: each principal has ids of its own.

        >>> Acting("ann").own("(0,) monday"), Acting().own("(0,) monday")
        ('@ann (0,) monday', '(0,) monday')
        """
        return f"@{self.who} {id}" if self.who else id


UNNAMED = Acting()
"""A caller who has given no name, such as a script with a session of its own."""


def principal(given: object) -> str:
    """The name of a principal, or `InvalidParameter`.

    >>> principal("ann@example.org")
    'ann@example.org'
    """
    text = str.__str__(given) if isinstance(given, str) else ""
    named = 0 < len(text) <= _LONGEST and text.isascii() and all(sign.isalnum() or sign in _ALSO for sign in text)
    if not named:
        raise InvalidParameter(
            f"a principal is named by 1 to {_LONGEST} letters, digits and signs of {''.join(sorted(_ALSO))}, such as "
            f"'ann', not the {type(given).__name__} {shown(given)}"
        )
    return text


def expiry(until: object) -> int | None:
    """When a grant ends, in seconds since 1970; a time without a zone would mean another moment elsewhere.

    >>> from datetime import UTC
    >>> expiry(datetime(2030, 1, 1, tzinfo=UTC))
    1893456000
    """
    if until is None:
        return None
    if not isinstance(until, datetime) or until.tzinfo is None:
        raise InvalidParameter("until is a datetime with a zone, such as datetime(2030, 1, 1, tzinfo=UTC)")
    return int(until.timestamp())


def mechanism_names(mechanisms: Sequence[object] | None) -> tuple[str, ...] | None:
    """The kinds of mechanism that a grant names."""
    if mechanisms is None:
        return None
    named = [kind for kind in mechanisms if isinstance(kind, type) and issubclass(kind, Mechanism)]
    if not named or len(named) != len(mechanisms):
        raise InvalidParameter("mechanisms are named by their classes, as in mechanisms=[Laplace, SparseVector]")
    return tuple(kind.__name__ for kind in named)
