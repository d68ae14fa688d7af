"""The public names: each is there, found when it is used, and listed once; also in an installed package."""

import builtins
import pathlib
import re
import sys
from types import ModuleType

import pytest

import counterpoint
from counterpoint import errors

PUBLIC_NAMES = pathlib.Path(__file__).with_name("public_names.txt")
ALIASES = {"mechanisms.Message", "relations.Pair", "relations.Progress"}
"""Names of types made of others, which carry no docstring of their own."""


def stub_names(package: ModuleType) -> set[str]:
    """The names that a type checker finds in a package's stub."""
    return set(re.findall(r"(\w+) as \1\b", (pathlib.Path(package.__path__[0]) / "__init__.pyi").read_text()))


NAMES = stub_names(counterpoint)
NAMESPACES = sorted(name for name in NAMES if isinstance(getattr(counterpoint, name), ModuleType))


def public():
    """Every public name and the thing that it names, the members of namespaces such as `verify` among them."""
    for name in NAMES:
        thing = getattr(counterpoint, name)
        yield name, thing
        if name in NAMESPACES:
            yield from ((f"{name}.{inner}", getattr(thing, inner)) for inner in thing.__all__)


def test_the_public_names_are_all_there_and_documented():
    assert set(dir(counterpoint)) >= NAMES
    for name, thing in public():
        assert thing.__doc__ or name in ALIASES, name


def test_the_top_level_is_short_enough_to_be_read():
    assert 60 < len(NAMES - set(NAMESPACES)) <= 80


def test_a_public_name_comes_or_goes_only_with_the_list_of_them():
    listed = PUBLIC_NAMES.read_text().splitlines()
    found = sorted(name for name, _ in public())
    assert found == listed, f"if the change is meant, edit tests/{PUBLIC_NAMES.name}"
    assert {"Odometer", "Session", "verify.exact", "compose.optimal", "relations.k_sparse", "errors.Halted"} <= set(
        found
    )


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_a_namespace_finds_the_names_of_its_stub(namespace):
    module = getattr(counterpoint, namespace)
    assert set(module.__all__) <= set(dir(module))
    if (pathlib.Path(module.__file__).parent / "__init__.pyi").exists() and hasattr(module, "__path__"):
        assert set(module.__all__) == stub_names(module)


def test_importing_all_names_replaces_none_of_pythons_own():
    found: dict[str, object] = {}
    exec("from counterpoint import *", found)
    assert set(counterpoint.__all__) <= set(found) and "Session" in found
    assert not set(vars(builtins)) & set(found) - {"__builtins__", "__doc__", "__name__"}
    assert counterpoint.sum is not sum and counterpoint.open is not open
    assert {"sum", "open"} == NAMES - set(counterpoint.__all__)


def test_every_error_is_a_public_name():
    ours = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert len(ours) > 15 and ours == set(errors.__all__)


def test_an_unknown_name_is_an_attribute_error_as_everywhere():
    with pytest.raises(AttributeError, match="'counterpoint' has no attribute 'nothing'"):
        counterpoint.nothing  # noqa: B018 - asking is the point
    with pytest.raises(AttributeError, match=r"'counterpoint.verify' has no attribute"):
        counterpoint.verify.nothing  # noqa: B018


def test_every_public_thing_has_an_example_with_it_or_at_the_top_of_its_file():
    for name, thing in public():
        module = sys.modules.get(getattr(thing, "__module__", ""), thing)
        assert ">>>" in f"{thing.__doc__}{module.__doc__}" or name in ALIASES, name
