"""Who may call what: the table that the tests go through, and that the guide's page on the service's security shows."""

import re

COUNT = {"request": {"request": "count", "where": "age > 35"}}
ROUTES = {
    ("GET", "/v1/data-sets"): {"carol", "ann", "bob", "olga", "paul"},
    ("GET", "/v1/data-sets/people"): {"carol", "ann", "olga"},
    ("GET", "/v1/data-sets/people/report"): {"carol"},
    ("GET", "/v1/data-sets/people/grants"): {"carol", "olga"},
    ("POST", "/v1/data-sets/people/grants"): {"carol"},
    ("DELETE", "/v1/data-sets/people/grants/{session}"): {"carol"},
    ("POST", "/v1/data-sets/people/grants/{session}/recount"): {"carol"},
    ("POST", "/v1/data-sets/people/reopening"): {"carol"},
    ("POST", "/v1/data-sets/people/recovery"): {"carol"},
    ("POST", "/v1/data-sets/visits/items"): {"paul"},
    ("POST", "/v1/data-sets/staff/rows"): {"paul"},
    ("POST", "/v1/data-sets/staff/removals"): {"paul"},
    ("POST", "/v1/data-sets/people/verification"): {"carol", "olga"},
    ("GET", "/v1/data-sets/people/record"): {"carol", "olga"},
    ("GET", "/v1/sessions"): {"carol", "ann", "bob"},
    ("GET", "/v1/sessions/{session}"): {"carol", "ann", "olga"},
    ("GET", "/v1/sessions/{session}/certificate"): {"carol", "ann", "olga"},
    ("GET", "/v1/sessions/{session}/history"): {"carol", "ann", "olga"},
    ("GET", "/v1/sessions/{session}/events?seconds=1"): {"carol", "ann", "olga"},
    ("GET", "/v1/sessions/{session}/receipts?id=first"): {"ann"},
    ("GET", "/v1/sessions/{session}/loss?distance=2"): {"carol", "ann", "olga"},
    ("GET", "/v1/sessions/{session}/timeline"): {"carol", "ann"},
    ("POST", "/v1/sessions/{session}/epsilons"): {"carol", "ann"},
    ("POST", "/v1/sessions/{session}/launches"): {"ann"},
    ("POST", "/v1/sessions/{session}/questions"): {"ann"},
    ("POST", "/v1/sessions/{session}/quotes"): {"carol", "ann"},
    ("POST", "/v1/sessions/{session}/delegations"): {"ann"},
    ("POST", "/v1/sessions/{session}/charges"): {"ann"},
    ("POST", "/v1/sessions/{session}/reservations"): {"ann"},
    ("POST", "/v1/sessions/{session}/settlements"): {"ann"},
    ("POST", "/v1/sessions/{session}/admissions"): {"carol", "ann"},
    ("POST", "/v1/sessions/{session}/partitions"): {"ann"},
    ("POST", "/v1/sessions/{parts}/parts"): {"ann"},
    ("GET", "/v1/sessions/{session}/place"): {"carol", "ann"},
    ("POST", "/v1/sessions/{session}/sql"): {"ann"},
    ("GET", "/v1/handles/{handle}"): {"carol", "ann"},
    ("POST", "/v1/handles/{handle}/asks"): {"ann"},
    ("POST", "/v1/handles/{handle}/preparations"): {"carol", "ann"},
    ("POST", "/v1/handles/{handle}/errors"): {"carol", "ann"},
    ("GET", "/v1/principals"): {"carol"},
    ("POST", "/v1/principals"): {"carol"},
    ("POST", "/v1/principals/{name}/keys"): {"carol"},
    ("DELETE", "/v1/principals/{name}"): {"carol"},
    ("DELETE", "/v1/keys/{id}"): {"carol"},
    ("POST", "/v1/backups"): {"carol"},
    ("GET", "/metrics"): {"carol", "olga"},
    ("GET", "/v1/data-sets/people/versions"): {"carol", "ann", "olga"},
    ("POST", "/v1/data-sets/people/versions"): {"carol"},
}
"""Who gets through to each route, where the session was granted to ann."""
BODIES = {
    "/v1/data-sets/people/grants": {"to": "bob", "within": {"measure": "PureDP", "epsilon": 0.1}},
    "/v1/data-sets/people/recovery": {"confirm": "people"},
    "/v1/data-sets/visits/items": {"items": [1]},
    "/v1/data-sets/people/versions": {"note": "the file of April", "keep": True},
    "/v1/data-sets/staff/rows": {"rows": [{"person": "ann", "row": 1, "age": 41}]},
    "/v1/data-sets/staff/removals": {"rows": [{"person": "ann", "row": 1}]},
    "/v1/sessions/{session}/launches": {"mechanism": {"mechanism": "Laplace", "epsilon": 0.1}},
    "/v1/sessions/{session}/questions": {**COUNT, "epsilon": 0.1},
    "/v1/sessions/{session}/quotes": {**COUNT, "epsilon": 0.1},
    "/v1/sessions/{session}/epsilons": {**COUNT, "error": 5},
    "/v1/sessions/{session}/delegations": {"within": {"measure": "PureDP", "epsilon": 0.1}},
    "/v1/sessions/{session}/charges": {
        "loss": {"measure": "PureDP", "epsilon": 0.1},
        "what": "a model, by another tool",
        "unit": "a person",
    },
    "/v1/sessions/{session}/reservations": {
        "loss": {"measure": "PureDP", "epsilon": 0.1},
        "what": "another model",
        "unit": "a person",
    },
    "/v1/sessions/{session}/settlements": {
        "reserved": {"loss": {"measure": "PureDP", "epsilon": 0.1}, "what": "a third model", "unit": "a person"},
        "loss": {"measure": "PureDP", "epsilon": 0.05},
    },
    "/v1/sessions/{session}/admissions": {"loss": {"measure": "PureDP", "epsilon": 0.1}},
    "/v1/sessions/{session}/partitions": {"by": "state", "within": {"measure": "PureDP", "epsilon": 0.1}},
    "/v1/sessions/{parts}/parts": {"key": "CA"},
    "/v1/sessions/{session}/sql": {"text": "SELECT COUNT(*) FROM people WHERE age > 35", "epsilon": 0.1},
    "/v1/handles/{handle}/asks": COUNT,
    "/v1/handles/{handle}/preparations": COUNT,
    "/v1/handles/{handle}/errors": COUNT,
}
COLUMNS = {
    "carol": "custodian",
    "ann": "analyst, own session",
    "bob": "analyst, another's",
    "olga": "auditor",
    "paul": "producer",
}
"""Whom each of the people in the tests stands for."""


def template(method, path):
    """A route as the OpenAPI has it."""
    named = re.sub("people|visits|staff", "{name}", path.partition("?")[0])
    return method, named.replace("{parts}", "{session}")


def page():
    """The table as the guide has it."""
    lines = [f"| route | {' | '.join(COLUMNS.values())} |", f"|---|{'---|' * len(COLUMNS)}"]
    for route, allowed in ROUTES.items():
        method, path = template(*route)
        cells = " | ".join("yes" if name in allowed else "" for name in COLUMNS)
        lines.append(f"| `{method} {path}` | {cells} |")
    return "\n".join(lines)
