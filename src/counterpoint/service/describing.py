"""The OpenAPI of the service: for each operation an example of its body and of its response, and which problems it has.

The examples in `examples.json` are what a running service was sent and answered (`python -m tests.service.examples`
writes them, and a test sends them again). Which problems an operation has follows from what it takes: whatever the
fuzzed requests of the tests get is declared.

>>> problems_of("post", "/v1/handles/{handle}/asks", has_body=True)
(400, 401, 403, 404, 409, 410, 413, 422, 429, 503)
>>> problems_of("get", "/v1/sessions", has_query=True)
(400, 401, 403, 429, 503)
>>> problems_of("get", "/health")
()
"""

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import OpenAPI

from counterpoint.privacy.losses import PureDP
from counterpoint.service.edge import PROBLEM
from counterpoint.service.problems import BudgetExceeded, problem

REASONS = {
    400: "The request has not the form that is described here; nothing was done",
    401: "There is no key, or none that stands",
    403: "The role of the key, or the grant of the session, does not allow it",
    404: "There is no such thing here, or it is another principal's",
    409: "It is refused now: the budget does not allow it, or the id was used for something else",
    410: "The mechanism has given its last answer",
    413: "The body is too large",
    422: "It cannot be done: a wrong parameter or request, or no theorem covers it; nothing was charged",
    429: "Too many requests: wait for as long as Retry-After says",
    503: "The ledger is away or the answer takes too long: repeat it with the same Idempotency-Key",
}
"""What each status of a problem means."""
_SCHEMA = {
    "type": "object",
    "description": "What was asked, the limit and what would work. `type` names the library's error.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
    "required": ["type", "title", "status", "detail"],
    "additionalProperties": True,
    "examples": [problem(BudgetExceeded("PureDP(2) does not fit: PureDP(1) is left", requested=PureDP(2)))],
}


def problems_of(method: str, path: str, *, has_body: bool = False, has_query: bool = False) -> tuple[int, ...]:
    """The statuses with which an operation can be refused."""
    if path in ("/health", "/ready"):
        return ()
    found = {401, 403, 429, 503}
    if has_query:
        found.add(400)
    if "{" in path:
        found |= {400, 404, 409, 422}
    if has_body:
        found |= {400, 409, 413, 422}
    if path == "/v1/backups":
        found |= {400, 409, 422}
    if path.endswith("/asks"):
        found.add(410)
    return tuple(sorted(found))


class Described(OpenAPI):
    """The OpenAPI, with examples and problems."""

    def to_schema(self) -> dict[str, Any]:
        """As it is sent."""
        return described(super().to_schema())


class Describing(OpenAPIConfig):
    """How the OpenAPI is made: as the framework does, and then described."""

    def to_openapi_schema(self) -> OpenAPI:
        """The OpenAPI before the routes are in it."""
        made = super().to_openapi_schema()
        return Described(**{name: getattr(made, name) for name in made.__dataclass_fields__})


def described(schema: dict[str, Any]) -> dict[str, Any]:
    """The same OpenAPI with examples and problems; the framework's own error bodies, which are never sent, go."""
    _let_any_fit(schema)
    schema["components"].setdefault("schemas", {})["Problem"] = _SCHEMA
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            _add_problems(method, path, operation)
            _add_example(operation, examples().get(f"{method.upper()} {path}", {}))
    return schema


def _let_any_fit(part: Any) -> None:
    """A whole number is an integer and a number: of the types that a field may have, one must fit, not exactly one."""
    if isinstance(part, dict):
        if "oneOf" in part:
            part["anyOf"] = part.pop("oneOf")
        part = list(part.values())
    for inner in part if isinstance(part, list) else ():
        _let_any_fit(inner)


def _add_problems(method: str, path: str, operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    responses.pop("400", None)
    content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    has_query = any(one["in"] == "query" for one in operation.get("parameters", ()))
    for status in problems_of(method, path, has_body="requestBody" in operation, has_query=has_query):
        responses[str(status)] = {"description": REASONS[status], "content": content}


def _add_example(operation: dict[str, Any], example: dict[str, Any]) -> None:
    if "body" in example:
        operation["requestBody"]["content"]["application/json"]["example"] = example["body"]
    if "response" in example:
        (answered,) = (one for status, one in operation["responses"].items() if status < "300")
        for content in answered["content"].values():
            content["example"] = example["response"]


@cache
def examples() -> dict[str, dict[str, Any]]:
    """A body and a response for each operation, by its method and path."""
    found: dict[str, dict[str, Any]] = msgspec.json.decode(
        files("counterpoint.service").joinpath("examples.json").read_bytes()
    )
    return found
