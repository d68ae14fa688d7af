"""What an editor knows about a user's program: the types that mypy and pyright find for what is asked."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"
START = """import counterpoint as cp

session = cp.Session(cp.datasets.people_table(), within=cp.PureDP(100))
"""
FOUND = {
    'session.ask(cp.count("age >= 18"), epsilon=1)': "IntAnswer",
    "session.ask(cp.count_distinct(), error=50)": "IntAnswer",
    'session.ask(cp.mean("age"), epsilon=1)': "FloatAnswer",
    'session.ask(cp.stdev("age"), epsilon=1)': "FloatAnswer",
    'session.ask(cp.share("age > 9"), epsilon=1)': "FloatAnswer",
    'session.ask(cp.sum("age"), epsilon=1)': "IntAnswer | FloatAnswer",
    'session.ask(cp.median("age"), epsilon=1)': "IntChoice | FloatChoice | TextChoice",
    'session.ask(cp.maximum("age"), epsilon=1)': "IntChoice | FloatChoice | TextChoice",
    'session.ask(cp.bounds("age"), epsilon=1)': "TupleAnswer",
    'session.ask(cp.top("city", 2), epsilon=1)': "TupleAnswer",
    'session.ask(cp.keys("city"), epsilon=1)': "KeysAnswer",
    'session.ask(cp.histogram("city"), epsilon=1)': "TableAnswer",
    'session.ask(cp.count(by="city"), epsilon=1)': "TableAnswer",
    'session.ask(cp.mean("age", by="city"), epsilon=1)': "TableAnswer",
    'session.ask(cp.median("age", by="city"), epsilon=1)': "TableAnswer",
    'session.ask(cp.select(n=cp.count(), age=cp.mean("age")), epsilon=1)': "RecordAnswer",
    'session.ask(cp.select(by="city", n=cp.count()), epsilon=1)': "SeveralAnswer",
    'session.ask(cp.sql("SELECT COUNT(*) FROM people"), epsilon=1)': "SeveralAnswer | RecordAnswer",
    'session.sql("SELECT COUNT(*) FROM people", epsilon=1)': "SeveralAnswer | RecordAnswer",
    "session.launch(cp.Laplace(epsilon=1))": "Handle[Laplace]",
    "session.launch(cp.Laplace(epsilon=1)).ask(cp.count())": "int",
    'session.launch(cp.Laplace(epsilon=1)).ask(cp.sum("age"))': "int | Fraction",
    'session.launch(cp.Gaussian(rho=1)).ask(cp.mean("age"))': "Fraction | float",
    "session.launch(cp.AboveThreshold(epsilon=1, threshold=5)).ask(cp.count())": "bool",
    "session.launch(cp.SparseVector(epsilon=1, threshold=5)).ask(cp.count())": "bool | tuple[bool, int | Fraction]",
}


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(START + "".join(f"reveal_type({asked})\n" for asked in FOUND))
    return file


def without_modules(found: str) -> str:
    return re.sub(r"\b(?:[a-z_]+\.)+(?=\w)", "", found)


def test_mypy_finds_what_comes_back(program):
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(program.parent / "cache"), str(program)]
    ran = subprocess.run(
        command,
        env={**os.environ, "MYPYPATH": str(SRC)},
        cwd=program.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    revealed = re.findall(r'Revealed type is "(.*)"', ran.stdout)
    assert dict(zip(FOUND, map(without_modules, revealed), strict=True)) == FOUND


def test_pyright_finds_what_comes_back(program):
    if importlib.util.find_spec("pyright") is None:
        pytest.skip("pyright is not installed: pip install pyright")
    settings = {"include": [program.name], "extraPaths": [str(SRC)], "typeCheckingMode": "strict"}
    (program.parent / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    ran = subprocess.run(command, cwd=program.parent, capture_output=True, text=True, check=False)
    if not ran.stdout.startswith("{"):
        pytest.skip(f"pyright could not be downloaded: {ran.stderr[-200:]}")
    said = json.loads(ran.stdout)["generalDiagnostics"]
    assert [one["message"] for one in said if one["severity"] != "information"] == []
    revealed = [re.search(r'is "([^"]*)"$', one["message"])[1] for one in said]
    assert dict(zip(FOUND, revealed, strict=True)) == FOUND
