"""The OpenAPI: every operation has examples that work and says which problems it has."""

import jsonschema
import pytest
from tests.service.authorisation import ROUTES, template
from tests.service.examples import REFUSED, TEXTS, made, shape, without_secrets
from tests.service.registry import served

from counterpoint.service.app import REASONS, examples

STALE = "responses have changed; `python -m tests.service.examples` writes the examples again"


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    with served(tmp_path_factory.mktemp("described")) as caller:
        caller.schema = caller.client.get("/schema/openapi.json").json()
        yield caller


def operations(schema):
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def test_every_example_is_accepted_as_it_stands_and_answered_in_the_shape_that_is_shown(call):
    seen = set()
    for route, example, response in made(call):
        seen.add(route)
        shown = examples().get(" ".join(route), {})
        assert shown.get("body") == example.get("body")
        if route in {template("POST", path) for path in REFUSED}:
            assert response.status_code == 409
            continue
        assert 200 <= response.status_code < 300, (route, response.text)
        if "response" in example:
            assert shape(without_secrets(response.json())) == shape(shown["response"]), f"{route}: {STALE}"
    assert seen == {template(*route) for route in ROUTES}


def test_every_body_and_every_json_response_has_an_example(call):
    without = {template("POST", path) for path in REFUSED} | {("GET", "/health"), ("GET", "/ready")}
    texts = {template("GET", path) for path in TEXTS} | without
    for method, path, operation in operations(call.schema):
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]["application/json"]
            schema = {**content["schema"], "components": call.schema["components"]}
            jsonschema.validate(content["example"], schema)
        (answered,) = [one for status, one in operation["responses"].items() if status < "300"]
        if (method, path) not in texts:
            assert all("example" in content for content in answered["content"].values()), (method, path)


def test_problems_are_declared_as_problems(call):
    for method, path, operation in operations(call.schema):
        refused = {status: one for status, one in operation["responses"].items() if status >= "400"}
        assert all(list(one["content"]) == ["application/problem+json"] for one in refused.values())
        assert {"401", "429", "503"} <= set(refused) or path in ("/health", "/ready")
        assert set(map(int, refused)) <= set(REASONS), (method, path)
    problem = call.schema["components"]["schemas"]["Problem"]
    jsonschema.validate(problem["examples"][0], problem)


PROBLEMS = [
    ("ann", "POST", "/v1/sessions/{session}/launches", {"mechanism": {"mechanism": "Laplace", "epsilon": 9}}, 409),
    ("ann", "POST", "/v1/sessions/{session}/launches", {"mechanisms": {}}, 400),
    ("ann", "POST", "/v1/sessions/{session}/launches", {"mechanism": {"mechanism": "Laplace", "x": 9}}, 422),
    ("ann", "POST", "/v1/sessions/{session}/sql", {"text": "x" * 2**21}, 413),
    (None, "GET", "/v1/sessions/{session}", None, 401),
    ("paul", "POST", "/v1/sessions/{session}/launches", {"mechanism": {}}, 403),
    ("bob", "GET", "/v1/sessions/{session}", None, 404),
    ("ann", "GET", "/v1/sessions/{session}/loss?distance=-1", None, 400),
    ("ann", "GET", "/v1/sessions/{session}/receipts?id=never", None, 404),
]


@pytest.mark.parametrize("case", PROBLEMS, ids=lambda case: f"{case[4]} {case[2]}")
def test_a_problem_that_a_caller_gets_is_declared(call, case):
    who, method, path, body, status = case
    got = call(who, method, path.format(session=call.granted(epsilon=0.01)), body)
    assert got.status_code == status and got.headers["content-type"] == "application/problem+json"
    declared = call.schema["paths"][path.partition("?")[0]][method.lower()]["responses"]
    assert str(status) in declared


def test_no_page_of_the_framework_runs_scripts_of_others_beside_the_dashboard(call):
    for page in ("", "/", "/scalar", "/swagger", "/redoc", "/elements", "/rapidoc", "/openapi.yaml", "/x"):
        got = call.client.get(f"/schema{page}")
        assert "<script" not in got.text and "cdn." not in got.text, page
    assert call.client.get("/schema").json()["info"]["title"] == "Counterpoint"


def test_a_mechanism_that_has_halted_is_gone(call):
    handle = call.launched(call.granted(), mechanism="Laplace", epsilon=0.1)
    path = "/v1/handles/{handle}/asks"
    count = {"request": {"request": "count"}}
    codes = [call("ann", "POST", path.format(handle=handle), count).status_code for _ in range(2)]
    assert codes == [201, 410] and "410" in call.schema["paths"][path]["post"]["responses"]
