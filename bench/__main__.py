"""Run every benchmark module, or the named ones: `python -m bench`, `python -m bench randomness`.

A benchmark module is a file beside this one with a function `rows()` that yields `Row`s.
"""

import pkgutil
import sys
from collections.abc import Iterator
from importlib import import_module

import bench
from bench.table import Row, report


def modules() -> list[str]:
    """The benchmark modules of this package."""
    found = (module.name for module in pkgutil.iter_modules(bench.__path__))
    return sorted(name for name in found if name not in ("__main__", "commits", "generator", "table"))


def rows(names: list[str]) -> Iterator[Row]:
    """The rows of the named modules, saying on the way what is being measured."""
    for name in names:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        yield from import_module(f"bench.{name}").rows()


def main(asked: list[str]) -> int:
    """0 if every target was met, 1 if one was not, 2 if there is no such benchmark."""
    unknown = sorted(set(asked) - set(modules()))
    if unknown:
        print(f"no benchmark named {', '.join(unknown)}; there are {', '.join(modules())}", file=sys.stderr)
        return 2
    return 0 if report(rows(asked or modules())) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
