"""A secret can be computed with and nothing else."""

import copy
import math
import pathlib
import pickle
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.errors import InvalidParameter, SecretLeak
from counterpoint.privacy.secret import Secret, reveal

vectors = st.lists(st.integers(), min_size=1, max_size=4).map(tuple)


@given(st.integers(), st.integers())
def test_arithmetic_on_secrets_is_arithmetic_on_what_they_hold(a, b):
    x, y = Secret(a), Secret(b)
    results = [(x + y, a + b), (x + b, a + b), (b + x, a + b), (x - y, a - b), (b - x, b - a), (x * y, a * b)]
    results += [(-x, -a), (abs(x), abs(a)), (3 * x, 3 * a), (x.clamp(-5, 5), min(max(a, -5), 5))]
    for secret, value in results:
        assert isinstance(secret, Secret) and reveal(secret) == value


@given(st.data())
def test_vectors_combine_coordinate_by_coordinate(data):
    a = data.draw(vectors)
    b = data.draw(st.lists(st.integers(), min_size=len(a), max_size=len(a)).map(tuple))
    assert reveal(Secret(a) + Secret(b)) == tuple(p + q for p, q in zip(a, b, strict=True))
    assert reveal(Secret(a) + 1) == reveal(1 + Secret(a)) == tuple(p + 1 for p in a)
    assert reveal(3 - Secret(a)) == tuple(3 - p for p in a)
    assert reveal(Secret(a).map(max)) == max(a)
    assert Secret(a).width == len(a) and Secret(1).width is None


DEEDS = {
    "truth": bool,
    "equality": lambda s: s == 3,
    "inequality": lambda s: s != 3,
    "order": lambda s: s < 3,
    "order the other way": lambda s: s <= 3,
    "hash": hash,
    "set": lambda s: {s},
    "str": str,
    "format": lambda s: f"{s}",
    "percent": lambda s: "%s" % s,  # noqa: UP031 - the old way must be refused as well
    "iteration": list,
    "length": len,
    "membership": lambda s: 3 in s,
    "index": lambda s: s[0],
    "use as an index": lambda s: [1, 2][s],
    "int": int,
    "float": float,
    "round": round,
    "sqrt": math.sqrt,
    "division": lambda s: s // 2,
    "true division": lambda s: s / 2,
    "modulo": lambda s: s % 2,
    "range": range,
    "if": lambda s: 1 if s else 0,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
}


@pytest.mark.parametrize("deed", DEEDS, ids=str)
def test_whatever_decides_by_a_secret_or_shows_it_leaks(deed):
    with pytest.raises(SecretLeak):
        DEEDS[deed](Secret(3))


def test_its_repr_shows_nothing():
    assert repr(Secret(123456)) == repr(Secret((7, 8))) == "Secret(...)"
    assert "123456" not in repr([Secret(123456)])


@pytest.mark.parametrize("value", [0.5, "3", None, (1, 0.5), object(), [1, "2"]])
def test_it_holds_integers_only_and_does_not_show_what_it_refuses(value):
    with pytest.raises(InvalidParameter) as caught:
        Secret(value)
    assert "0.5" not in str(caught.value)


def test_shapes_that_do_not_combine_are_refused():
    with pytest.raises(InvalidParameter):
        Secret((1, 2)) + Secret((1, 2, 3))


def test_only_mechanisms_and_the_relations_of_the_game_open_secrets():
    package = pathlib.Path(__file__).parents[2] / "src" / "counterpoint"
    openers = {
        path.relative_to(package).parts[0]
        for path in package.rglob("*.py")
        if "reveal(" in path.read_text() and path.name != "secret.py"
    }
    assert openers <= {"mechanisms", "privacy", "local", "verify"}, "local/ has mechanisms and relations of its own"
    inside_privacy = {p.name for p in (package / "privacy").glob("*.py") if "reveal(" in p.read_text()}
    assert inside_privacy == {"secret.py", "messages.py", "relations.py"}


@pytest.mark.parametrize("partial", [lambda raw: {0: 1}[raw], lambda raw: 1 // (raw - 41), lambda raw: f"it is {raw}"])
def test_a_function_that_fails_on_a_secret_does_not_quote_it(partial):
    with pytest.raises(InvalidParameter) as caught:
        Secret(41).map(partial)
    shown = "".join(traceback.format_exception(caught.value))
    assert "must be total" in shown and "KeyError" not in shown and "ZeroDivision" not in shown
