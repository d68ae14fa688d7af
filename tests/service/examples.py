"""The examples of the OpenAPI: what a service is sent and answers. `python -m tests.service.examples` writes them."""

import json
import tempfile
from pathlib import Path

from tests.service.authorisation import BODIES, COUNT, ROUTES, template
from tests.service.registry import served

import counterpoint.service

FILE = Path(counterpoint.service.__file__).with_name("examples.json")
TEXTS = ("/metrics", "/v1/data-sets/people/record", "/v1/sessions/{session}/events?seconds=1")
"""Routes whose responses are no JSON."""
MORE_BODIES = {
    "/v1/principals": {"name": "eve", "role": "analyst"},
    "/v1/principals/{name}/keys": {"days": 90},
}
REFUSED = ("/v1/backups", "/v1/data-sets/people/recovery")
"""Routes that the service of the examples refuses: it keeps no backups, and nothing in it is to be recovered."""
FIRST = {"POST": 0, "GET": 1, "DELETE": 2}


def made(call):
    """Send each example to a service: the route, the example, and the response."""
    session = call.granted()
    handle = call.launched(session)
    by = BODIES["/v1/sessions/{session}/partitions"]
    parts = call("ann", "POST", f"/v1/sessions/{session}/partitions", by).json()["partition"]
    call("ann", "POST", f"/v1/handles/{handle}/asks", COUNT, id="first")
    revoked = call.granted(epsilon=0.5)
    call("carol", "DELETE", f"/v1/data-sets/people/grants/{revoked}")
    for method, path in sorted(ROUTES, key=lambda route: FIRST[route[0]]):
        who = "ann" if "ann" in ROUTES[method, path] else min(ROUTES[method, path])
        named = revoked if path.endswith("recount") else session
        keys = [key.id for key in call.registry.identity.keys("eve")]
        url = path.format(session=named, handle=handle, parts=parts, name="eve", id=keys[0] if keys else None)
        body = {**BODIES, **MORE_BODIES}.get(path) if method == "POST" else None
        response = call(who, method, url, body, id=f"example {method} {path}")
        example = {} if body is None else {"body": body}
        if path not in (*TEXTS, *REFUSED):
            example["response"] = without_secrets(response.json())
        yield template(method, path), example, response


def without_secrets(said):
    """The same, but a key is not shown, and a list or a long text is cut short."""
    if isinstance(said, dict):
        return {name: "cp_..." if name == "key" else without_secrets(value) for name, value in said.items()}
    if isinstance(said, list):
        return [without_secrets(part) for part in said[:2]]
    return f"{said[:400]}..." if isinstance(said, str) and len(said) > 400 else said


def shape(said):
    """Which fields a response has, and of which kinds they are; entries of a list are of one shape."""
    if isinstance(said, dict):
        return {name: shape(value) for name, value in said.items()}
    if isinstance(said, list):
        return [shape(part) for part in said[:1]]
    return "number" if isinstance(said, int | float) and not isinstance(said, bool) else type(said).__name__


def write():
    """Write the examples of all operations, in their order."""
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as call:
        found = {" ".join(route): example for route, example, _ in made(call) if example}
    FILE.write_text(json.dumps(dict(sorted(found.items())), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write()
