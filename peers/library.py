"""A library: how it is installed, how it does the tasks, and why it cannot do the others."""

import inspect
import textwrap
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any, NamedTuple, TypeAlias

from docs.cells import Cell

Work: TypeAlias = Callable[[int], Callable[[], Any]]
"""Prepares a task of this size and returns what is measured: a call that returns the answers."""


class Library(NamedTuple):
    """A library; every task is either in `works` or, with the reason, in `cannot`.

    `module` is the one that has it as LIBRARY, where its process looks for it, and `package` what it is installed as.
    `start` imports it and starts what it runs on, before the clock runs. `gallery` is its script of the gallery.
    """

    name: str
    title: str
    package: str
    module: str
    installs: tuple[str, ...]
    works: Mapping[str, Work]
    cannot: Mapping[str, str]
    start: Callable[[], None]
    gallery: str = ""
    no_gallery: str = ""


def lines(work: Work) -> int:
    """The logical lines of a task's function and of those that it calls in its file, without heads and docstrings.

    >>> def doubled(size):
    ...     return lambda: [2] * size
    >>> lines(doubled)
    1
    """
    return sum(_body(function) for function in _reached(work, {}).values())


def _body(function: Any) -> int:
    source = textwrap.dedent(inspect.getsource(function))
    return Cell("", "", source).lines - 1 - bool(function.__doc__)


def _reached(function: Any, found: dict[str, Any]) -> dict[str, Any]:
    found[function.__name__] = function
    for name in sorted(_names(function.__code__)):
        called = function.__globals__.get(name)
        if inspect.isfunction(called) and called.__module__ == function.__module__ and name not in found:
            _reached(called, found)
    return found


def _names(code: CodeType) -> set[str]:
    """The names in a code, and in the functions that are defined in it."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(_names, inner))
