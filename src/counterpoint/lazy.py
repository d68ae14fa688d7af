"""The public names of a package, imported when they are first used (PEP 562).

A package lists its names once, in `__init__.pyi`, where type checkers look for them, as in `from
counterpoint.measures import PureDP as PureDP`. A name of Python's own, such as `sum`, is found (`cp.sum`) but not
in `__all__`: `from counterpoint import *` must not replace it.

`lazy_loader` reads stubs, too, but a namespace such as `cp.mechanisms` has names of other rooms, and it takes only
imports from within the package; it also lists `sum` in `__all__`.

>>> import counterpoint
>>> "PureDP" in counterpoint.__all__, "sum" in counterpoint.__all__, "sum" in dir(counterpoint)
(True, False, True)
"""

import builtins
import sys
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from types import ModuleType


def listed(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package with a stub."""
    module = sys.modules[package]
    homes = _homes(module)

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=module)
        value = _imported(homes[name], name)
        vars(module)[name] = value
        return value

    def names() -> list[str]:
        return sorted({*homes, *vars(module)})

    return get, names, sorted(name for name in homes if name not in vars(builtins))


def load(package: str) -> None:
    """Import every name of a package, and of the namespaces among them."""
    for name, home in _homes(sys.modules[package]).items():
        value = _imported(home, name)
        if isinstance(value, ModuleType):
            for inner in value.__all__:
                getattr(value, inner)


def _homes(module: ModuleType) -> dict[str, str]:
    """The module that each name of a package lives in, by its stub."""
    homes: dict[str, str] = {}
    room = ""
    for line in _stub(module).splitlines():
        words = line.replace(",", " ").split()
        if words[:1] == ["from"]:
            room = words[1]
        homes |= {name: room for before, name in pairwise(words) if before == "as"}
    return homes


def _stub(module: ModuleType) -> str:
    path = f"{module.__path__[0]}/__init__.pyi"
    data: bytes = module.__spec__.loader.get_data(path)  # type: ignore[union-attr] # every loader of files has it
    return data.decode()


def _imported(home: str, name: str) -> object:
    module = import_module(home)
    return vars(module)[name] if name in vars(module) else import_module(f"{home}.{name}")
