"""`make mutate`: plant every bug of `mutants.toml`, one at a time, and tell which ones no test noticed.

Arguments are parts of a file's path or of a bug's description; without any, all are planted.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from tests.mutation.planting import FOUND, SURVIVED, copy_of_the_tree, mutants, outcome_with, outcome_without

T = TypeVar("T")
Look = Callable[[T, Path, float], str]


def main() -> int:
    """Plant them, print a line for each and a table of those that were not found; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("names", nargs="*", help="only what has one of these in its file or description")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    parser.add_argument("--seconds", type=float, default=300, help="the time limit of each")
    given = parser.parse_args()
    wanted = [m for m in mutants() if not given.names or any(n in f"{m.file}: {m.bug}" for n in given.names)]
    with tempfile.TemporaryDirectory() as folder:
        trees = [copy_of_the_tree(Path(folder) / str(number)) for number in range(given.jobs)]
        missed: list[tuple[str, str]] = []
        for tests, outcome in _each(sorted({m.tests for m in wanted}), outcome_without, trees, given.seconds):
            if outcome != SURVIVED:
                said = "a test fails without any bug" if outcome == FOUND else outcome
                missed.append((said, " ".join(tests)))
        for mutant, outcome in [] if missed else _each(wanted, outcome_with, trees, given.seconds):
            print(f"{outcome:10} {mutant.file}: {mutant.bug}", flush=True)
            if outcome != FOUND:
                missed.append((outcome, f"{mutant.file}: {mutant.bug}"))
    for outcome, what in missed:
        print(f"NOT FOUND  {what}: {outcome}")
    print(f"{len(wanted)} bugs were planted; {'none was missed' if not missed else f'{len(missed)} are listed above'}")
    return 1 if missed or not wanted else 0


def _each(things: Iterable[T], look: Look[T], trees: list[Path], seconds: float) -> Iterator[tuple[T, str]]:
    """What each comes to, as many at once as there are trees."""
    free: SimpleQueue[Path] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def looked(thing: T) -> tuple[T, str]:
        tree = free.get()
        try:
            return thing, look(thing, tree, seconds)
        finally:
            free.put(tree)

    with ThreadPoolExecutor(len(trees)) as pool:
        yield from pool.map(looked, things)


if __name__ == "__main__":
    sys.exit(main())
