"""`make proofs`: check every proof, print each theorem with what it assumes, and tie them to the code.

Then every error of `planted.toml` is planted, one at a time, and must break a proof; and the functions of
`arithmetic.v` decide on random histories beside `Filter.admit`. Without `coqc` it says how to install it.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.proofs.coq import (
    CLOSED,
    HOW_TO_INSTALL,
    assumptions,
    compiled,
    copy_of_the_proofs,
    coqc,
    files,
    flaws,
    planted_errors,
    refusal,
    theorems,
    verdicts,
)
from tests.proofs.histories import differences, random_histories


def main() -> int:
    """Check, print and compare; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.proofs", description=__doc__)
    parser.add_argument("--histories", type=int, default=100_000, help="how many histories are compared")
    given = parser.parse_args()
    if coqc() is None:
        print(f"SKIPPED  no proof was checked: {HOW_TO_INSTALL}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        proofs = copy_of_the_proofs(Path(folder) / "proofs")
        failed = flaws() or _proofs(proofs) or _planted(proofs) or _compared(proofs, given.histories)
    for line in failed:
        print(f"FAILED   {line}")
    return 1 if failed else 0


def _proofs(folder: Path) -> list[str]:
    for name in files(folder):
        try:
            compiled(folder, name)
        except subprocess.CalledProcessError as refused:
            return [f"{name}: {refused.stderr.strip()}"]
    stated, assumed = theorems(folder), assumptions(folder)
    for name in files(folder):
        for theorem in (theorem for theorem, file in stated.items() if file == name):
            print(f"proved   {name:18} {theorem:30} {assumed[theorem]}")
    open_ones = [f"{theorem} assumes {what}" for theorem, what in assumed.items() if what != CLOSED]
    print(f"{len(stated)} theorems in {len(files(folder))} files; {len(open_ones)} of them assume anything", flush=True)
    return open_ones


def _planted(folder: Path) -> list[str]:
    missed = []
    for planted in planted_errors():
        try:
            where = refusal(planted, folder)
        except (ValueError, subprocess.CalledProcessError) as error:
            missed.append(f"{planted.file}: {planted.error}: {getattr(error, 'stderr', error)}")
            continue
        print(f"{'refused' if where else 'ACCEPTED':8} {planted.file}: {planted.error}: {where}", flush=True)
        if where is None:
            missed.append(f"{planted.file}: {planted.error}: every proof still holds")
    return missed


def _compared(folder: Path, count: int) -> list[str]:
    histories = list(random_histories(count))
    differing = differences(histories, verdicts(histories, folder))
    print(f"{count} histories: Filter.admit and the functions of arithmetic.v differ on {len(differing)}")
    return differing[:20]


if __name__ == "__main__":
    sys.exit(main())
