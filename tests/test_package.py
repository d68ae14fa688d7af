"""The package as a whole: its layers, its weight, its documents."""

import pathlib
import re
import subprocess
import sys
import tomllib

import pytest

import counterpoint

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "counterpoint"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LAYERS = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"][::-1]


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


STORY = ("launched", "BudgetExceeded", "Henzinger et al. 2024, Thm 12.4", "after 3600 visits", "Exact delta")


def unwrapped(told):
    """What was told, whichever lines and boxes it was put into."""
    return " ".join(told.replace("│", " ").split())


def test_the_demo_tells_its_story_to_the_checked_receipt_and_exits_with_0():
    pytest.importorskip("litestar")
    done = run("-m", "counterpoint", "demo")
    assert (done.returncode, done.stderr) == (0, "")
    for phrase in (*STORY, "to ann and PureDP(0.4) to bob", "the grant of 'bob' was revoked", "1 receipt holds"):
        assert phrase in unwrapped(done.stdout)


def test_without_the_extra_the_demo_says_how_to_see_the_service_and_a_seed_makes_it_repeatable():
    base_install = "import sys; sys.modules['uvicorn'] = None; from counterpoint.demo import tell; tell(seed=1)"
    first, again = run("-c", base_install), run("-c", base_install)
    assert (first.returncode, first.stderr) == (0, "")
    for phrase in (*STORY, "pip install 'counterpoint[service]'"):
        assert phrase in unwrapped(first.stdout)
    assert first.stdout == again.stdout


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
