"""People, for custodians: who can sign in, as what, and with which keys; adding a person, making and ending keys.

A key is shown once, in the response to the form that made it, which no browser may keep. Its public id follows from the
form, so a form that is sent twice makes one key and shows it once. What ends a person or a key is asked back first.

>>> key_id("3f1c") == key_id("3f1c"), len(key_id("3f1c"))
(True, 16)
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

from litestar import Request, Response, get, post

from counterpoint.errors import CounterpointError, InvalidParameter, LedgerError, NotAllowed
from counterpoint.ledger.store.records import StoredKey, StoredPrincipal
from counterpoint.service.api.inputs import InPath, TheRegistry, for_roles, request_id
from counterpoint.service.identity import ApiKey, Role, SignedIn, is_browser
from counterpoint.service.pages.access import By, Form
from counterpoint.service.pages.render import elsewhere, page
from counterpoint.service.pages.session import PageRefusal, refusal
from counterpoint.service.pages.words import day, whole_number
from counterpoint.service.registry import Registry
from counterpoint.wire.problems import unknown

LINES = 25
"""How many people a page lists."""
MOST_KEYS = 6
"""How many keys of a person a page lists; the valid ones come first."""
ROLES = (
    (Role.ANALYST, "asks, within what is granted"),
    (Role.AUDITOR, "reads histories and certificates; sees no answers"),
    (Role.PRODUCER, "adds rows to streams and live tables; reads nothing"),
    (Role.CUSTODIAN, "grants, revokes, adds people"),
)
"""What each role may do, in a line."""
PERIODS = (("90", "90 days"), ("30", "30 days"), ("365", "1 year"), ("", "never"))
"""After how many days a key can end, and how the form says it."""


@dataclass(frozen=True, slots=True)
class KeyLine:
    """A key, as the page shows it."""

    id: str
    words: str
    is_valid: bool


@dataclass(frozen=True, slots=True)
class PersonLine:
    """A person with their keys; `browsers` is how many are signed in, `more` how many keys are not listed."""

    name: str
    role: str
    ended: str
    keys: Sequence[KeyLine]
    more: int
    valid: int
    browsers: int
    grants: int = 0
    """How many grants to them stand."""
    last: int | None = None
    """When they did something that a record has, if they did."""


@dataclass(frozen=True, slots=True)
class ShownKey:
    """A key that was just made; its text is in no repr."""

    name: str
    role: str
    id: str
    ends: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Question:
    """What a page asks before it makes or ends something: `new key`, `end key` or `end`, of whom, and which key."""

    about: str = ""
    name: str = ""
    key: str = ""


@get("/people", sync_to_thread=True, include_in_schema=False, guards=[for_roles(Role.CUSTODIAN)])
def show(request: Request[Any, Any, Any], registry: TheRegistry, by: By) -> Response[Any]:
    """All people, in pages; with `?new-key=`, `?end-key=` or `?end=`, the question before that."""
    query = request.query_params
    name, key = query.get("of", ""), query.get("key", "")
    about = next((word for word in ("new key", "end key", "end") if query.get("do") == word), "")
    question = Question(about, name, key)
    return _page(registry, by, start=whole_number(query.get("start", ""), 1), begins=query.get("q", ""), asks=question)


@post("/people", sync_to_thread=True, include_in_schema=False, guards=[for_roles(Role.CUSTODIAN)])
def add(registry: TheRegistry, by: By, data: Form) -> Response[Any]:
    """Add a person, and show their first key."""
    form = {key: str(value) for key, value in data.items()}
    try:
        name, days = form.get("name", "").strip(), _days(form)
        registry.identity.add(name, _role(form), by=by.who.name)
        made = registry.identity.new_key(name, days=days, by=by.who.name, id=_key_id(form))
    except LedgerError:
        raise
    except CounterpointError as error:
        refused, status = refusal(error)
        return _page(registry, by, refused=refused, form=form, status=status)
    return _page(registry, by, shown=_shown(registry, name, made))


@post("/people/{name:str}/keys", sync_to_thread=True, include_in_schema=False, guards=[for_roles(Role.CUSTODIAN)])
def new_key(registry: TheRegistry, by: By, name: InPath, data: Form) -> Response[Any]:
    """Make another key for a person, and show it."""
    form = {key: str(value) for key, value in data.items()}
    try:
        made = registry.identity.new_key(name, days=_days(form), by=by.who.name, id=_key_id(form))
    except LedgerError:
        raise
    except CounterpointError as error:
        refused, status = refusal(error)
        return _page(registry, by, refused=refused, status=status)
    return _page(registry, by, shown=_shown(registry, name, made))


@post("/people/{name:str}/end", sync_to_thread=True, include_in_schema=False, guards=[for_roles(Role.CUSTODIAN)])
def end(registry: TheRegistry, by: By, name: InPath) -> Response[Any]:
    """End a person with all their keys."""
    if name not in {one.name for one in registry.identity.principals()}:
        raise unknown(name)
    if name == by.who.name:
        raise NotAllowed("you cannot end yourself here: another custodian can")
    registry.identity.end(name, by=by.who.name)
    return elsewhere("/people")


@post("/people/keys/{id:str}/end", sync_to_thread=True, include_in_schema=False, guards=[for_roles(Role.CUSTODIAN)])
def end_key(registry: TheRegistry, by: By, id: InPath) -> Response[Any]:
    """End a key, and every browser that signed in with it."""
    if not registry.identity.has_key(id):
        raise unknown(id)
    registry.identity.end_key(id, by=by.who.name)
    return elsewhere("/people")


def _page(
    registry: Registry,
    by: SignedIn,
    *,
    start: int = 1,
    begins: str = "",
    asks: Question = Question(),
    shown: ShownKey | None = None,
    refused: PageRefusal | None = None,
    form: dict[str, str] | None = None,
    status: int = 200,
) -> Response[Any]:
    people = sorted(registry.identity.principals(), key=lambda one: (one.ended is not None, one.name))
    chosen = [one for one in people if one.name.lower().startswith(begins.lower())]
    first = _place_of(chosen, asks.name or ("" if shown is None else shown.name), start)
    listed = chosen[first - 1 : first - 1 + LINES]
    keys, grants, last = _keys_of(registry), _grants_of(registry), _last_of(registry, [one.name for one in listed])
    now = registry.identity.now()
    return page(
        "people",
        by,
        here="/people",
        status=status,
        lines=[
            replace(_line(one, keys[one.name], now), grants=grants[one.name], last=last.get(one.name)) for one in listed
        ],
        number=len(people),
        ended=sum(one.ended is not None for one in people),
        found=len(chosen),
        start=first,
        begins=begins,
        earlier=None if first == 1 else _address(max(1, first - LINES), begins),
        later=None if first - 1 + LINES >= len(chosen) else _address(first + LINES, begins),
        asks=asks,
        own_key=by.token.key,
        shown=shown,
        refused=refused,
        form=form or {},
        roles=ROLES,
        periods=PERIODS,
    )


def _place_of(people: Sequence[StoredPrincipal], name: str, start: int) -> int:
    """The first line of the page with this person, or the one that was asked for."""
    place = next((number for number, one in enumerate(people) if name and one.name == name), None)
    return max(1, start) if place is None else place - place % LINES + 1


def _address(start: int, begins: str) -> str:
    return f"/people?{urlencode({'q': begins, 'start': start} if begins else {'start': start})}"


def _grants_of(registry: Registry) -> Counter[str]:
    """How many grants to each person stand."""
    given = (one for name in registry.bound for one in registry.granted(name))
    return Counter(one.grant.to for one in given if not one.grant.revoked)


def _last_of(registry: Registry, names: Sequence[str]) -> dict[str, int]:
    """When each of these people last did something that a data set has on record: read from the newest line back."""
    found: dict[str, int] = {}
    for data_set in registry.bound:
        wanted = set(names)
        for fact in reversed(registry.data_set(data_set).session().history):
            if fact.who in wanted:
                wanted.discard(fact.who)
                found[fact.who] = max(found.get(fact.who, 0), fact.at)
                if not wanted:
                    break
    return found


def _keys_of(registry: Registry) -> dict[str, list[StoredKey]]:
    found: dict[str, list[StoredKey]] = defaultdict(list)
    for key in registry.identity.all_keys():
        found[key.principal].append(key)
    return found


def _line(one: StoredPrincipal, stored: Sequence[StoredKey], now: int) -> PersonLine:
    """A person: their valid keys first, the newest of each kind before older ones."""
    keys = [key for key in reversed(stored) if not is_browser(key.id)]
    keys.sort(key=lambda key: not key.stands(now))
    lines = [KeyLine(key.id, _end_of(key, now), key.stands(now)) for key in keys[:MOST_KEYS]]
    return PersonLine(
        one.name,
        one.role,
        "" if one.ended is None else f"ended {day(one.ended)}",
        lines,
        len(keys) - len(lines),
        sum(key.stands(now) for key in keys),
        sum(key.stands(now) for key in stored if is_browser(key.id)),
    )


def _end_of(key: StoredKey, now: int) -> str:
    """When a key ends or has ended; an expired key ended when it expired, whether it was used since or not."""
    ends = [at for at in (key.expires, key.ended) if at is not None]
    if not key.stands(now):
        return f"ended {day(min(ends))}"
    return f"ends {day(ends[0])}" if ends else "no end"


def _shown(registry: Registry, name: str, key: ApiKey) -> ShownKey:
    role = next(one.role for one in registry.identity.principals() if one.name == name)
    stored = next(one for one in registry.identity.keys(name) if one.id == key.id)
    return ShownKey(name, role, key.id, "no end" if stored.expires is None else day(stored.expires), key.shown())


def key_id(once: str) -> str:
    """The public id of the key that the form with this id makes."""
    return sha256(f"counterpoint key form {once}".encode()).hexdigest()[:16]


def _key_id(form: dict[str, str]) -> str:
    return key_id(request_id(form.get("once")))


def _role(form: dict[str, str]) -> Role:
    given = form.get("role", "")
    if given not in tuple(Role):
        raise InvalidParameter(f"a person is {', '.join(Role)}, not {given[:40]!r}")
    return Role(given)


def _days(form: dict[str, str]) -> int | None:
    given = form.get("days", "")
    if given not in dict(PERIODS):
        raise InvalidParameter("choose after how many days the key ends")
    return int(given) if given else None
