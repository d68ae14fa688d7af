"""Requests made up from the OpenAPI, right and wrong: none is a fault of ours, and what is refused charges nothing."""

import warnings

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.service.authorisation import ROUTES, template
from tests.service.registry import PEOPLE, served
from tests.service.worker import GENEROUS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import schemathesis
    from schemathesis.generation import GenerationMode

OPERATIONS = sorted({template(*route) for route in ROUTES})


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    """A service with a session, a handle and data sets that requests can name."""
    with served(tmp_path_factory.mktemp("fuzzed"), limits=GENEROUS) as caller:
        caller.schema = schemathesis.openapi.from_dict(caller.client.get("/schema/openapi.json").json())
        session = caller.granted(epsilon=4)
        caller.named = {
            "session": [session, "people", "visits"],
            "handle": [caller.launched(session)],
            "name": ["people", "visits", "staff"],
        }
        yield caller


def charged(call):
    """What a malformed request must leave as it is: every loss, and how much has arrived."""
    losses = [one["loss"]["text"] for one in call("carol", "GET", "/v1/data-sets").json()]
    return losses, [call.registry.data_set(name).source.pin() for name in call.registry.names]


def fuzz(call, method, path, examples):
    operation = call.schema[path][method]
    declared = operation.definition.raw["responses"]
    cases = st.one_of(operation.as_strategy(generation_mode=mode) for mode in GenerationMode)

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(cases, st.sampled_from(sorted(PEOPLE)), st.data())
    def sent(case, who, data):
        for name, known in call.named.items():
            if name in case.path_parameters and data.draw(st.booleans()):
                case.path_parameters[name] = data.draw(st.sampled_from(known))
        if path.endswith("/events"):
            case.query = {**(case.query or {}), "seconds": 1}
        given_ = case.as_transport_kwargs(base_url="http://testserver.local")
        headers = {**given_.pop("headers", {}), "Authorization": f"Bearer {call.keys[who]}"}
        kept = {name: given_[name] for name in ("url", "params", "json") if name in given_}
        if given_.get("data") is not None:
            kept["content"] = given_["data"]
        before = charged(call)
        got = call.client.request(method, headers=headers, **kept)
        assert got.status_code < 500, (kept, got.text)
        assert str(got.status_code) in declared, (kept, got.text)
        if got.status_code >= 400:
            assert got.headers["content-type"] == "application/problem+json", (kept, got.text)
            assert {"type", "title", "status", "detail"} <= set(got.json())
            assert charged(call) == before, (kept, got.text)

    sent()


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=map(" ".join, OPERATIONS))
def test_nothing_that_can_be_sent_is_a_fault_or_charges_without_an_answer(call, method, path):
    fuzz(call, method, path, 8)


@pytest.mark.long
@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=map(" ".join, OPERATIONS))
def test_the_same_for_long(call, method, path):
    fuzz(call, method, path, 20 if path.endswith("/events") else 1000)


@settings(max_examples=50, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(body=st.binary(max_size=200), kind=st.sampled_from(["application/json", "text/plain", "application/x-msgpack"]))
def test_bytes_that_are_no_body_are_refused(call, body, kind):
    headers = {"Authorization": f"Bearer {call.keys['ann']}", "Content-Type": kind}
    before = charged(call)
    got = call.client.post(f"/v1/sessions/{call.named['session'][0]}/launches", content=body, headers=headers)
    assert 400 <= got.status_code < 500, (body, got.text)
    assert charged(call) == before
