"""`python -m peers` installs the peers, measures everything and writes the page; `python -m peers TASK ...` measures
these tasks again and keeps the other results; `python -m peers page` writes the page from the results that there are.
"""

import json
import os
import platform
import sys
from typing import Any

from peers import page
from peers.child import CPU_LIMIT
from peers.data import write_rows
from peers.environments import build, version
from peers.libraries import LIBRARIES
from peers.measuring import ALL, measure


def main(asked: list[str]) -> int:
    """0 if all was measured, 2 if there is no such task."""
    names = [task.name for task in ALL]
    unknown = sorted(set(asked) - {*names, "page"})
    if unknown:
        print(f"no task named {', '.join(unknown)}; there are {', '.join(names)}", file=sys.stderr)
        return 2
    for name in [name for name in names if name in asked or not asked]:
        remeasure(name)
    page.write(read())
    return 0


def remeasure(name: str) -> None:
    """Measure a task, and put its rows in the place of the earlier ones."""
    missing = {}
    for library in LIBRARIES.values():
        reason = build(library)
        if reason:
            missing[library.name] = f"did not install here: {reason}"
    for size in (10**4, 10**6, 10**7):
        write_rows(size)
    task = next(task for task in ALL if task.name == name)
    rows = list(measure(task, list(LIBRARIES.values()), missing))
    earlier = read()["rows"] if page.RESULTS.exists() else []
    results = {
        "with": {
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
            "cores": os.cpu_count(),
            "cpu_limit": CPU_LIMIT,
        },
        "versions": {each.name: version(each) for each in LIBRARIES.values() if each.name not in missing},
        "rows": [row for row in earlier if row["task"] != name] + rows,
    }
    page.RESULTS.write_text(spelled(results), encoding="utf-8")


def spelled(results: dict[str, Any]) -> str:
    """The results as JSON, with a line for each row."""
    rows = ",\n".join(json.dumps(row) for row in results["rows"])
    rest = {key: value for key, value in results.items() if key != "rows"}
    return json.dumps(rest)[:-1] + f', "rows": [\n{rows}\n]}}\n'


def read() -> dict[str, Any]:
    """The results that there are."""
    found: dict[str, Any] = json.loads(page.RESULTS.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
