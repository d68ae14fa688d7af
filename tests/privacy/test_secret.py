"""A secret can be computed with and nothing else."""

import copy
import copyreg
import inspect
import math
import pathlib
import pickle
import traceback

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.carried import chained, shows

from counterpoint.errors import InvalidParameter, NotTotal, SecretLeak
from counterpoint.privacy.messages import Ask, Update
from counterpoint.privacy.secret import Secret, Tally, noting_failures, reveal

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
    "state": lambda s: s.__getstate__(),
    "reduction": lambda s: object.__reduce_ex__(s, 2),
    "old reduction": lambda s: copyreg._reduce_ex(s, 1),
}


@pytest.mark.parametrize("deed", DEEDS, ids=str)
def test_whatever_decides_by_a_secret_or_shows_it_leaks(deed):
    with pytest.raises(SecretLeak):
        DEEDS[deed](Secret(3))


def test_its_repr_shows_nothing():
    assert repr(Secret(123456)) == repr(Secret((7, 8))) == "Secret(...)"
    assert "123456" not in repr([Secret(123456)])


@pytest.mark.parametrize("value", [0.5, "3", None, (1, 0.5), object(), [1, "2"], np.array([1, 2])])
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
    assert openers <= {"continual", "mechanisms", "privacy", "local", "verify"}, "rooms with mechanisms or relations"
    inside_privacy = {p.name for p in (package / "privacy").rglob("*.py") if "reveal(" in p.read_text()}
    assert inside_privacy == {"secret.py", "messages.py", "steps.py"}


CANARY = 8_675_309


def endless(raw):
    return endless(raw)


PARTIAL = {
    "looks up": lambda raw: {0: 1}[raw],
    "divides": lambda raw: 1 // (raw - CANARY),
    "quotes": lambda raw: f"it is {raw}",
    "raises": lambda raw: exec(f"raise ValueError({raw})"),
    "panics, which is no Exception": lambda raw: pytest.fail(f"{raw}"),
    "does not end": endless,
    "returns nothing": lambda raw: None,
    "returns a fraction": lambda raw: raw / 2,
    "returns a vector": lambda raw: (raw,),
    "returns a tally": lambda raw: Tally(((raw, 1),)),
    "returns a secret": Secret,
    "returns an array": lambda raw: np.array([raw, raw]),
    "wants another argument": lambda raw, more: raw,
}


def caught(error, deed):
    with pytest.raises(error) as info:
        deed()
    return info.value


def leaves_nothing_behind(error):
    return chained(error) == [] and not shows(error, CANARY, __file__)


@pytest.mark.parametrize("partial", PARTIAL)
def test_a_function_that_fails_on_a_secret_leaves_nothing_of_it_behind(partial):
    error = caught(NotTotal, lambda: Secret(CANARY).map(PARTIAL[partial]))
    assert leaves_nothing_behind(error), "`raise ... from None` only hides what is there"
    shown = "".join(traceback.format_exception(error))
    assert "must be total" in shown and str(CANARY) not in shown and "During" not in shown


def test_every_failure_of_a_function_is_the_same_error():
    errors = [caught(NotTotal, lambda f=f: Secret(CANARY).map(f)) for f in PARTIAL.values()]
    errors += [caught(NotTotal, lambda: Secret((CANARY, 1)).map(lambda raw: raw[1:], width=2))]
    assert len({str(error) for error in errors}) == 1 and isinstance(errors[0], InvalidParameter)


def test_an_interruption_goes_on_without_the_frames_that_saw_the_secret():
    for interruption in (KeyboardInterrupt, SystemExit, GeneratorExit):

        def interrupted(raw, interruption=interruption):
            held = raw + 0
            raise interruption from ValueError(held)

        assert leaves_nothing_behind(caught(interruption, lambda f=interrupted: Secret(CANARY).map(f)))


@given(st.integers(-3, 5) | vectors, st.none() | st.integers(0, 5), st.sampled_from(["number", "ones", "itself"]))
def test_the_shape_of_a_mapped_secret_is_the_declared_one_whatever_the_value(raw, width, what):
    size = raw if isinstance(raw, int) else sum(raw) % 5
    function = {"number": lambda _: size, "ones": lambda _: (1,) * size, "itself": lambda given: given}[what]
    try:
        mapped = Secret(raw).map(function, width=width)
    except NotTotal:
        return
    assert mapped.width == width and not mapped.keyed


def test_a_width_is_declared_in_public():
    assert reveal(Secret((3, 9)).map(lambda raw: [raw[1], True], width=2)) == (9, 1)
    assert Secret((3, 9)).map(lambda raw: (), width=0).width == 0
    for width in (-1, 1.5, "many"):
        error = caught(InvalidParameter, lambda w=width: Secret(CANARY).map(abs, width=w))
        assert not shows(error, CANARY, __file__)
    assert leaves_nothing_behind(caught(SecretLeak, lambda: Secret(CANARY).map(abs, width=Secret(CANARY))))


def test_a_failure_is_noted_for_who_runs_the_program_although_it_is_caught():
    with noting_failures() as outer:
        with noting_failures() as inner:
            caught(NotTotal, lambda: Secret(0).map(lambda raw: 1 // raw))
        assert inner and not outer, "by the innermost program"
        Secret(1).map(lambda raw: 1 // raw)
    assert not outer


REFUSED = {
    "clamp at a fraction": lambda raw: Secret(raw).clamp(0.5, 3),
    "clamp at a text": lambda raw: Secret(raw).clamp("0", 3),
    "clamp at a secret": lambda raw: Secret(raw).clamp(Secret(raw), 3),
    "add a longer vector": lambda raw: Secret((raw, raw)) + Secret((1, 2, 3)),
    "add a fraction": lambda raw: Secret(raw) + 0.5,
    "add a tally": lambda raw: Secret(raw) + Secret(Tally(((raw, raw),))),
    "multiply a tally by less than nothing": lambda raw: Secret(Tally(((raw, raw),))) * -1,
    "multiply a tally by a secret": lambda raw: Secret(Tally(((raw, raw),))) * Secret(raw),
    "map a tally": lambda raw: Secret(Tally(((raw, raw),))).map(len),
    "map by a tally": lambda raw: Secret(raw).map(max, Secret(Tally(((raw, raw),)))),
    "compare": lambda raw: Secret(raw) > 3,
    "divide": lambda raw: Secret(raw) // 2,
}


@pytest.mark.parametrize("deed", REFUSED)
def test_what_a_secret_refuses_it_refuses_for_every_value_and_keeps_the_value(deed):
    """On a neighbouring value each of these would otherwise have passed: 1 within [0.5, 3], an empty tally."""
    errors = [caught((InvalidParameter, SecretLeak), lambda r=r: REFUSED[deed](r)) for r in (0, 1, CANARY)]
    assert len({(type(error), str(error)) for error in errors}) == 1
    assert leaves_nothing_behind(errors[-1])


@pytest.mark.parametrize("value", [CANARY, (CANARY, 2), Tally(((CANARY, CANARY),))])
def test_nothing_that_goes_through_the_attributes_of_a_secret_finds_its_value(value):
    secret = Secret(value)
    names = {*dir(secret), *Secret.__slots__, "_raw", "_Secret__raw", "__dict__"} - {"__sealed__"}
    found = [getattr(secret, name, None) for name in names]
    found += [faced for faced in found if not callable(faced)] + [repr(inspect.getmembers(secret)), repr([secret])]
    assert not any(str(CANARY) in repr(face) for face in found)
    for deed in (vars, msgspec.to_builtins, msgspec.json.encode, msgspec.msgpack.encode, msgspec.structs.asdict):
        with pytest.raises((TypeError, SecretLeak)) as info:
            deed(secret)
        assert str(CANARY) not in str(info.value)
    for message in (Ask(private=secret), Update(secret)):
        assert str(CANARY) not in repr(message) + repr(list(message.__rich_repr__()))


def test_only_the_encoding_asks_a_secret_for_what_it_seals():
    package = pathlib.Path(__file__).parents[2] / "src" / "counterpoint"
    callers = {path.name for path in package.rglob("*.py") if "__sealed__" in path.read_text()}
    assert callers == {"encoding.py", "secret.py", "packed.py", "samples.py", "symbolic.py"}, (
        "three define it, one refuses"
    )
