"""The people of a service, for its custodians: list them, add one with a key, make and end keys, end a person.

>>> Person("ann", "analyst", False, (IssuedKey("0123456789abcdef", True),)).valid_keys
('0123456789abcdef',)
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from counterpoint.client.calls import Call, Calls, Remote, Runner, all_of, served


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key by its public id; `expires` is in seconds since 1970, and None if it does not."""

    id: str
    is_valid: bool
    expires: int | None = None


@dataclass(frozen=True, slots=True)
class Person:
    """Who may call a service, in which role, with which keys."""

    name: str
    role: str
    ended: bool
    keys: tuple[IssuedKey, ...]

    @property
    def valid_keys(self) -> tuple[str, ...]:
        """The ids of the keys that neither expired nor were ended."""
        return tuple(key.id for key in self.keys if key.is_valid)


class RemotePeople(Remote):
    """The people of a service: `connect(url, key=...).people`, with a custodian's key."""

    def __init__(self, service: Runner) -> None:
        self._service = service

    @served
    def all(self) -> Calls[tuple[Person, ...]]:
        """Everybody, by name; also those that ended, since histories name them."""
        listed = yield from all_of("/v1/principals")
        return tuple(map(_person, listed))

    @served
    def add(self, name: str, role: str, *, days: int | None = None) -> Calls[str]:
        """Add a person, and return their first key, which is shown only once; it expires after `days`, if given."""
        yield Call("POST", "/v1/principals", {"name": name, "role": role})
        return (yield from self._made(name, days))

    @served
    def new_key(self, name: str, *, days: int | None = None) -> Calls[str]:
        """Another key for a person, which is shown only once."""
        return (yield from self._made(name, days))

    def _made(self, name: str, days: int | None) -> Calls[str]:
        made = yield Call("POST", f"/v1/principals/{quote(name, safe='')}/keys", {"days": days})
        return str(made["key"])

    @served
    def end(self, name: str) -> Calls[None]:
        """End a person with all their keys; what they did stays on record."""
        yield Call("DELETE", f"/v1/principals/{quote(name, safe='')}")

    @served
    def end_key(self, id: str) -> Calls[None]:
        """End a key by its public id."""
        yield Call("DELETE", f"/v1/keys/{quote(id, safe='')}")


def _person(said: dict[str, Any]) -> Person:
    keys = tuple(IssuedKey(key["id"], key["stands"], key["expires"]) for key in said["keys"])
    return Person(said["name"], said["role"], said["ended"], keys)
