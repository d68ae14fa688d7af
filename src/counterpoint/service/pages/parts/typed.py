"""What people type in a form: a question or a mechanism, as they would write it in Python. It is read, never run.

>>> question("count(where='age > 40')")
Count(where='age > 40')
>>> mechanism("Laplace(epsilon=0.5, asks=3)")
Laplace(epsilon=0.5, asks=3)
>>> question("__import__('os').system('ls')")
Traceback (most recent call last):
...
counterpoint.errors.InvalidRequest: write a question such as count(where="age > 40")
"""

import ast
from typing import Any

from counterpoint.errors import InvalidRequest
from counterpoint.mechanisms.mechanism import Mechanism
from counterpoint.service import wire

_LONGEST = 2000
_QUESTION = 'a question such as count(where="age > 40")'
_MECHANISM = "a mechanism such as Laplace(epsilon=0.1, asks=5)"


def question(text: str) -> Any:
    """The request that was typed."""
    said = _said(text, "request", _QUESTION)
    wire.checked(said)
    return wire.request(said)


def mechanism(text: str) -> Mechanism:
    """The mechanism that was typed."""
    said = _said(text, "mechanism", _MECHANISM)
    wire.checked(said)
    return wire.mechanism(said)


def _said(text: str, field: str, example: str) -> dict[str, Any]:
    """One call with plain values, as the wire has it; nothing else is understood."""
    try:
        if len(text) > _LONGEST:
            raise ValueError
        return _call(ast.parse(text.strip().removeprefix("cp."), mode="eval").body, field)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidRequest(f"write {example}") from None


def _call(node: ast.expr, field: str) -> dict[str, Any]:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError
    name = node.func.id
    listed = wire.MECHANISMS if field == "mechanism" else wire.REQUESTS
    places = wire.fields_of(name) if name in listed else ()
    if len(node.args) > len(places) or any(keyword.arg is None for keyword in node.keywords):
        raise ValueError
    given = [*zip(places, node.args, strict=False), *((str(keyword.arg), keyword.value) for keyword in node.keywords)]
    return {field: name, **{key: _value(value) for key, value in given}}


def _value(node: ast.expr) -> Any:
    """A number, a text, a list of them, or a request inside a request."""
    if isinstance(node, ast.Call):
        return _call(node, "request")
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(part) for part in node.elts]
    return ast.literal_eval(node)
