"""The package as a whole: its public face, its layers, its weight, its documents."""

import builtins
import pathlib
import re
import subprocess
import sys
import tomllib
from types import ModuleType

import pytest

import counterpoint
from counterpoint import errors

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "counterpoint"
PUBLIC_NAMES = ROOT / "tests" / "public_names.txt"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LAYERS = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"][::-1]


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


@pytest.mark.parametrize(("name", "home"), [("Graph", "local"), ("heavy_hitters", "local"), ("two_worlds", "verify")])
def test_a_name_that_has_moved_is_found_with_a_warning_that_says_where(name, home):
    with pytest.warns(DeprecationWarning, match=f"is counterpoint.{home}.{name} now"):
        old = getattr(counterpoint, name)
    assert old is getattr(getattr(counterpoint, home), name)
    assert name not in dir(counterpoint)


def test_every_error_is_a_public_name():
    ours = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert len(ours) > 15 and ours <= NAMES


def test_an_unknown_name_is_an_attribute_error_as_everywhere():
    with pytest.raises(AttributeError, match="'counterpoint' has no attribute 'nothing'"):
        counterpoint.nothing  # noqa: B018 - asking is the point
    with pytest.raises(AttributeError, match=r"'counterpoint.verify' has no attribute"):
        counterpoint.verify.nothing  # noqa: B018


def test_what_was_stored_can_be_read_before_its_room_has_been_imported():
    stored = b'{"type":"PureDP/1","epsilon":"1/10"}'
    code = f"from counterpoint.encoding import Plain, decode; print(decode({stored!r}, Plain))"
    assert run("-c", code).stdout.strip() == "PureDP(0.1)"


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_downward_only(path):
    room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if room not in LAYERS:
        return
    above = LAYERS[LAYERS.index(room) + 1 :]
    imported = re.findall(r"^\s*(?:from|import) counterpoint\.(\w+)", path.read_text(), re.MULTILINE)
    assert not set(imported) & set(above)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_insecure_randomness_and_no_pickle_in_the_package(path):
    text = path.read_text()
    assert not re.search(r"^\s*(import|from) (random|pickle)\b|np\.random|numpy\.random", text, re.MULTILINE)


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_opens_with_why_it_exists(path):
    text = path.read_text()
    assert text.startswith(('"""', 'r"""'))


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=ROOT)


def test_nothing_heavy_is_imported_before_it_is_used():
    heavy = [
        "scipy",
        "pandas",
        "pyarrow",
        "mpmath",
        "flint",
        "duckdb",
        "sqlglot",
        "typer",
        "rich",
        "cryptography",
        "matplotlib",
    ]
    code = f"import sys, counterpoint; print([m for m in {heavy} if m in sys.modules])"
    assert run("-c", code).stdout.strip() == "[]"


def test_importing_it_loads_hardly_anything():
    code = (
        "import sys, typing, importlib; before = len(sys.modules); import counterpoint; print(before, len(sys.modules))"
    )
    before, after = map(int, run("-c", code).stdout.split())
    assert after <= before + 2


def test_the_demo_tells_its_story_and_exits_with_0():
    done = run("-m", "counterpoint", "demo", "--seed", "1")
    assert (done.returncode, done.stderr) == (0, "")
    for phrase in ("launched", "BudgetExceeded", "Henzinger et al. 2024, Thm 12.4", "after day 3", "Exact delta"):
        assert phrase in done.stdout
    assert run("-m", "counterpoint", "demo", "--seed", "1").stdout == done.stdout, "a seed makes it repeatable"
    assert run("-m", "counterpoint", "demo").returncode == 0


def test_the_version_is_said_once_and_shown():
    stated = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert stated and stated[1] == counterpoint.__version__
    assert counterpoint.__version__ in run("-m", "counterpoint", "--version").stdout


def pages(folder: pathlib.Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*.md")} - {"README.md"}


def linked(page: pathlib.Path) -> set[str]:
    return set(re.findall(r"\]\(([\w/.-]+\.md)\)", page.read_text()))


def test_every_page_of_the_guide_is_listed():
    docs = ROOT / "docs"
    assert "guide/sessions.md" in pages(docs)
    assert pages(docs) == linked(docs / "README.md")


def test_every_link_between_the_pages_leads_to_one():
    docs = ROOT / "docs"
    for page in [ROOT / "README.md", docs / "README.md", *(docs / name for name in pages(docs))]:
        assert not [link for link in linked(page) if not (page.parent / link).is_file()], page


def test_every_public_thing_has_an_example_with_it_or_at_the_top_of_its_file():
    for name in NAMES:
        thing = getattr(counterpoint, name)
        module = sys.modules.get(getattr(thing, "__module__", ""), thing)
        assert ">>>" in f"{thing.__doc__}{module.__doc__}" or name == "Message", name
