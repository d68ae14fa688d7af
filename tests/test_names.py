"""The public names: all there, found once they are used, listed once; also of an installed package."""

import builtins
import pathlib
import re
import sys
from types import ModuleType

import pytest

import counterpoint
from counterpoint import errors

PACKAGE = pathlib.Path(counterpoint.__file__).parent
PUBLIC_NAMES = pathlib.Path(__file__).with_name("public_names.txt")


def listed_in(package: pathlib.Path) -> set[str]:
    """The names that a type checker finds in a package's stub."""
    return set(re.findall(r"(\w+) as \1\b", (package / "__init__.pyi").read_text()))


NAMES = listed_in(PACKAGE)
NAMESPACES = ["compose", "datasets", "local", "relations", "verify"]


def test_the_public_names_are_all_there_and_documented():
    assert set(NAMES) <= set(dir(counterpoint)) and len(NAMES) > 100
    for name in NAMES:
        assert getattr(counterpoint, name).__doc__ or name == "Message", name


def public_names():
    """Every public name, those of namespaces such as `verify` among them."""
    yield from NAMES
    for namespace in NAMESPACES:
        yield from (f"{namespace}.{inner}" for inner in getattr(counterpoint, namespace).__all__)


def test_a_public_name_comes_or_goes_only_with_the_list_of_them():
    listed = PUBLIC_NAMES.read_text().splitlines()
    assert sorted(public_names()) == listed, f"if the change is meant, edit tests/{PUBLIC_NAMES.name}"
    assert {"Odometer", "Session", "verify.exact", "compose.optimal", "relations.k_sparse"} <= set(listed)


def test_every_namespace_has_a_list_of_its_names_and_finds_them():
    modules = {name for name in NAMES if isinstance(getattr(counterpoint, name), ModuleType)}
    assert modules == set(NAMESPACES)
    for namespace in NAMESPACES:
        module = getattr(counterpoint, namespace)
        assert all(getattr(module, name).__doc__ for name in module.__all__), namespace
    for namespace in ("local", "verify"):
        assert set(getattr(counterpoint, namespace).__all__) == listed_in(PACKAGE / namespace)


def test_importing_all_names_replaces_none_of_pythons_own():
    found: dict[str, object] = {}
    exec("from counterpoint import *", found)
    assert set(counterpoint.__all__) <= set(found) and "Session" in found
    assert not set(vars(builtins)) & set(found) - {"__builtins__", "__doc__", "__name__"}
    assert counterpoint.sum is not sum and counterpoint.open is not open
    assert {"sum", "open"} == NAMES - set(counterpoint.__all__)


def test_every_error_is_a_public_name():
    ours = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert len(ours) > 15 and ours <= NAMES


def test_an_unknown_name_is_an_attribute_error_as_everywhere():
    with pytest.raises(AttributeError, match="'counterpoint' has no attribute 'nothing'"):
        counterpoint.nothing  # noqa: B018 - asking is the point
    with pytest.raises(AttributeError, match=r"'counterpoint.verify' has no attribute"):
        counterpoint.verify.nothing  # noqa: B018


def test_every_public_thing_has_an_example_with_it_or_at_the_top_of_its_file():
    for name in NAMES:
        thing = getattr(counterpoint, name)
        module = sys.modules.get(getattr(thing, "__module__", ""), thing)
        assert ">>>" in f"{thing.__doc__}{module.__doc__}" or name == "Message", name
