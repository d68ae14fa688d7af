"""The checker against the ledger (an honest record never fails) and against forgers (nothing else passes)."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from fractions import Fraction
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.ledger.test_receipts import as_json, lines, new, retold, signer_of

import counterpoint as cp
from counterpoint import checker
from counterpoint.errors import CounterpointError, LedgerTampered
from counterpoint.ledger import chain
from counterpoint.ledger.chain import Head, Receipt, Signer
from counterpoint.ledger.store import records
from counterpoint.ledger.store.store import ChangeSet
from counterpoint.numbers.exact import LARGEST

BUDGETS = {
    "pure": cp.Filter(cp.PureDP(1)),
    "few launches": cp.Filter(cp.PureDP(1), launches=5),
    "zCDP": cp.Filter(cp.zCDP("0.5")),
    "basic": cp.Filter(cp.ApproxDP(1, "1e-6"), by="basic"),
    "best": cp.Filter(cp.ApproxDP(1, "1e-6")),
}


def sound(record, receipts, key):
    return checker.check(iter(record), receipts, key)


@pytest.fixture(scope="module")
def story(tmp_path_factory):
    """An honest record with receipts; the ledger's signer."""
    with new(tmp_path_factory.mktemp("story")) as session:
        hers = session.grant("ann", cp.PureDP("0.5"))
        noisy = hers.launch(cp.Laplace("0.2", asks=3))
        noisy.ask(cp.count(), id="monday")
        noisy.ask(cp.count(), id="tuesday")
        session.launch(cp.Laplace("0.4")).ask(cp.count(), id="wednesday")
        receipts = [as_json(hers, "monday"), as_json(hers, "tuesday"), as_json(session, "wednesday")]
        yield lines(session), receipts, session._engine.ledger._signer


def test_the_checker_and_the_ledger_say_the_same_of_what_may_be_stored():
    assert frozenset(records.KINDS) - frozenset(chain.REGISTERED) == checker.KINDS and checker.ADMITTED == chain.INTENTS
    assert checker.LARGEST == LARGEST and checker.LONGEST == records.LONGEST
    assert checker.FIELDS == chain.Entry.__struct_fields__ == checker.RecordEntry._fields


# ---- honest records never fail

EPSILONS = st.one_of(
    st.sampled_from(["1/10", "1/3", "1e-50", f"1/{3**104}", f"{7**50}/{10**49 + 9}"]),
    st.integers(1, 10**50).map(lambda d: f"1/{d}"),
    st.tuples(st.integers(1, 2**64), st.integers(2**64, 2**166)).map(lambda ratio: f"{ratio[0]}/{ratio[1]}"),
    st.sampled_from(["left", "left and a little more", "left and a little less"]),
)
ACTS = st.sampled_from(
    ["launch", "launch", "in the grant", "grant", "delegate", "partition", "revoke", "zCDP", "recount"]
)


def pages(folder, rule):
    visits = cp.Stream(fields={"page": cp.category(["home", "help"])})
    return cp.Session(visits, rule=rule, ledger=str(folder / "ledger.db"))


def left(session, text):
    """A number; or what is left of the budget, as the account has it."""
    if not text.startswith("left"):
        return text
    account, budget = session._engine.ledger.read(session._path).state.account, session.rule.budget
    account = getattr(account, "sum", account)
    spent = next((getattr(account, name) for name in ("epsilon", "rho", "basic") if hasattr(account, name)), 0)
    whole = getattr(budget, "epsilon", None) or budget.rho
    more = {"left": 0, "left and a little more": 1, "left and a little less": -1}[text]
    rest = (whole - (spent or 0)) * 10**49
    return max(Fraction(rest.numerator // rest.denominator + more, 10**49), Fraction(1, 10**49))


def act(session, what, text, granted):
    """One act of a custodian or of ann, who may be refused."""
    if what == "launch":
        session.launch(cp.Laplace(left(session, text))).ask(cp.count())
    elif what == "zCDP":
        session.launch(cp.Gaussian(rho=left(session, text)))
    elif what in ("grant", "delegate"):
        loss = cp.PureDP(left(session, text))
        granted.append(session.grant("ann", loss) if what == "grant" else session.delegate(loss))
    elif what == "partition":
        session.partition("page", 3, within=cp.PureDP(left(session, text)))["home"].launch(cp.Laplace(text))
    elif granted and what == "in the grant":
        granted[-1].launch(cp.Laplace(left(granted[-1], text)))
    elif granted and what == "revoke":
        session.revoke(granted[-1])
    elif granted:
        session.revoke(granted[0])
        session.recount(granted.pop(0))


@pytest.mark.parametrize("rule", BUDGETS.values(), ids=BUDGETS)
@given(acts=st.lists(st.tuples(ACTS, EPSILONS), max_size=10), place=st.floats(0, 1), letter=st.sampled_from("0a7Z"))
@settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
def test_an_honest_record_holds_whatever_was_launched_and_one_that_was_changed_anywhere_does_not(
    tmp_path_factory, rule, acts, place, letter
):
    with pages(tmp_path_factory.mktemp("acts"), rule) as session:
        granted = []
        for what, text in acts:
            with suppress(CounterpointError):
                act(session, what, text, granted)
        record, key = lines(session), signer_of(session)
        session._engine.ledger.verify()
    assert "signed by the service" in sound(record, [], key)
    text = "\n".join(record)
    at = min(int(place * len(text)), len(text) - 1)
    if text[at] != letter and text[at] != "\n":
        with pytest.raises(checker.DoesNotHold):
            sound((text[:at] + letter + text[at + 1 :]).split("\n"), [], key)


def test_ratios_of_many_digits_round_alike_in_the_checker_and_in_the_ledger(tmp_path):
    """As an analyst made an honest record fail: 20 odd denominators, then what is left."""
    with new(tmp_path) as session:
        hers, total = session.grant("ann", cp.PureDP("0.5")), Fraction(0)
        for number in range(20):
            below = (2**165 // (2 * number + 3)) | 1
            hers.launch(cp.Laplace(f"1/{below}"))
            total += Fraction(1, below)
        rest = (Fraction(1, 2) - total) * 10**49
        with pytest.raises(cp.BudgetExceeded):
            hers.launch(cp.Laplace(Fraction(rest.numerator // rest.denominator + 1, 10**49)))
        hers.launch(cp.Laplace(Fraction(rest.numerator // rest.denominator, 10**49)))
        session.revoke(hers)
        session.recount(hers)
        assert "24 admissions and refusals are right" in sound(lines(session), [], signer_of(session))


def test_a_sum_that_was_rounded_up_refuses_what_the_exact_one_would_take(tmp_path):
    """Parts of a hundredth each, in denominators that together are too long: the last part would fill the budget."""
    below = [10**44 + 2 * number + 1 for number in range(12)]
    with new(tmp_path) as session:
        hers = session.grant("ann", cp.PureDP(Fraction(12, 100)))
        parts = [Fraction(1, long) for long in below]
        for part in (*parts, *(Fraction(1, 100) - part for part in parts[:-1])):
            hers.launch(cp.Laplace(part))
        with pytest.raises(cp.BudgetExceeded):
            hers.launch(cp.Laplace(Fraction(1, 100) - parts[-1]))
        assert "admissions and refusals are right" in sound(lines(session), [], signer_of(session))


@pytest.mark.parametrize("within", [cp.PureDP("1/30"), cp.PureDP(f"1/{3**104}")], ids=["short", "long"])
@pytest.mark.parametrize("budget", [cp.PureDP(1), cp.zCDP(1)], ids=["pure", "zCDP"])
def test_parts_are_counted_as_the_launches_that_they_are_made_of(tmp_path, budget, within):
    """As one loss they would cost something else: the optimal composition, or a square."""
    with pages(tmp_path, cp.Filter(budget)) as session:
        session.partition("page", 20, within=within)
        with suppress(cp.BudgetExceeded):
            session.launch(cp.Laplace("0.4") if budget == cp.PureDP(1) else cp.Gaussian(rho="0.995"))
        said = sound(lines(session), [], signer_of(session))
    assert "2 admissions and refusals are right" in said and "not checked" not in said


def test_an_entry_is_as_long_as_the_checker_reads_or_refused_uncharged(tmp_path, monkeypatch):
    with new(tmp_path) as session:
        monkeypatch.setattr(records, "LONGEST", 2**13)
        with pytest.raises(cp.errors.InvalidParameter, match="bytes, and this request needs more"):
            session.ask(cp.histogram("clicks", edges=[Fraction(n, 1000) for n in range(900)]), epsilon="0.1")
        session.ask(cp.count(), epsilon="0.9")
        monkeypatch.setattr(checker, "LONGEST", 2**13)
        assert "entries hold" in sound(lines(session), [], signer_of(session))


def test_a_recount_that_was_refused_leaves_a_record_that_holds(tmp_path):
    with pages(tmp_path, cp.Filter(cp.PureDP(1), launches=5)) as session:
        hers = session.grant("ann", cp.PureDP("0.5"))
        hers.launch(cp.Laplace("0.2"))
        session.revoke(hers)
        with pytest.raises(cp.errors.NotCovered):
            session.recount(hers)
        session._engine.ledger.verify()
        assert "entries hold" in sound(lines(session), [], signer_of(session))


# ---- forged and hostile


def remade(record, values):
    """A record that tells this of its first launch's cost."""

    def change(entries):
        first = next(entry for entry in entries if entry[1] == "launch")
        return [[*e[:12], values] if e is first else e for e in entries]

    return retold(record, change)


NUMBERS = [
    "1e-99999999",
    "1e9999999",
    "nan",
    "-1",
    0.1,
    True,
    None,
    "1/0",
    "0x1/1",
    "١/٣",
    " 1/2 ",
    "1_0/1",
    "9" * 10**6,
]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: str(number)[:12])
def test_a_cost_that_no_service_writes_does_not_hold(story, number):
    with pytest.raises(checker.DoesNotHold, match=r"service writes|more digits|below 0"):
        checker.check(iter(remade(story[0], json.dumps({"type": "PureDP/1", "epsilon": number}))))


@pytest.mark.parametrize(
    "cost", ["", "[]", "{}", "null", "7", '{"type": 1}', '[{"type":"PureDP/1","epsilon":"1/9"},{}]']
)
def test_a_launch_that_does_not_say_what_it_costs_does_not_hold(story, cost):
    with pytest.raises(checker.DoesNotHold):
        checker.check(iter(remade(story[0], cost)))


DEEP, WIDE = "[" * 10**6, "1" * 10**7
HOSTILE = {
    "nothing": "",
    "an empty line": "\n",
    "nesting": DEEP,
    "a wide integer": WIDE,
    "a long line": '{"format": "counterpoint-record/1", "genesis": "' + "00" * 10**7,
    "a float": '{"format": 1e9999}',
    "not a number": "NaN",
    "a field twice": '{"format": "counterpoint-record/1", "format": "counterpoint-record/1"}',
    "half a surrogate pair": '"\\ud800"',
    "not UTF-8": b"\xff\xfe",
    "a null byte": b"\x00",
}


@pytest.mark.parametrize("where", ["first line", "line", "entry", "body", "receipt", "signed text"])
@pytest.mark.parametrize("what", HOSTILE)
def test_any_bytes_are_answered(story, tmp_path, what, where, capsys):
    """In place of a whole line, of an entry, of the body of one, of a receipt: a verdict, and no traceback."""
    record, receipts, signer = list(story[0]), dict(story[1][0]), story[2]
    bad = HOSTILE[what]
    data = bad if isinstance(bad, bytes) else bad.encode("utf-8", "surrogatepass")
    text = data.decode("utf-8", "surrogateescape")
    if where == "entry":
        record[5] = json.dumps({"number": 5, "entry": text})
    elif where == "body":
        record = (
            retold(record, lambda entries: [[*e[:5], text, *e[6:]] if e[1] == "launch" else e for e in entries])
            if "\udcff" not in text
            else [*record[:3], "\udcff"]
        )
    elif where == "signed text":
        receipts["receipt"] = text
    written = [line.encode("utf-8", "surrogateescape") for line in record]
    if where in ("first line", "line"):
        written[0 if where == "first line" else 4] = data
    (tmp_path / "r.jsonl").write_bytes(b"\n".join(written) + b"\n")
    (tmp_path / "x.json").write_bytes(data if where == "receipt" else json.dumps(receipts).encode())
    given = ["--signer", signer.public, str(tmp_path / "r.jsonl"), str(tmp_path / "x.json")]
    assert checker.main(given) == 1
    assert len(capsys.readouterr().err) < 400


@pytest.mark.parametrize(
    "header", [{"genesis": "00"}, {"head": {"number": "9", "hash": "00"}}, {"more": 1}, {"session": 1}]
)
def test_a_first_line_that_no_service_writes_does_not_hold(story, header):
    changed = {**json.loads(story[0][0]), **header}
    with pytest.raises(checker.DoesNotHold):
        checker.check(iter([json.dumps(changed), *story[0][1:]]))


def test_entries_and_losses_of_unknown_kinds_are_counted_and_fail(story, tmp_path, capsys):
    def hidden(entries):
        launch = next(entry for entry in entries if entry[1] == "launch")
        return [*entries, [0, "launchh", *launch[2:]], [0, "launchh", *launch[2:]]]

    (tmp_path / "r.jsonl").write_text("\n".join(retold(story[0], hidden)) + "\n")
    assert checker.main([str(tmp_path / "r.jsonl")]) == 3
    assert "2 entries 'launchh'" in capsys.readouterr().err
    nonsense = remade(story[0], '{"type":"Nonsense/1"}')
    with pytest.raises(checker.NotAllKnown, match="1 losses 'Nonsense/1'"):
        checker.check(iter(nonsense))


def test_an_overspent_budget_is_seen_behind_a_charge_that_is_not_known(story):
    def change(entries):
        costs = iter(['{"type":"Nonsense/1"}', '{"type":"PureDP/1","epsilon":"1000000/1"}'])
        return [[*e[:12], next(costs)] if e[1] == "launch" else e for e in entries]

    with pytest.raises(checker.DoesNotHold, match="does not fit into its budget"):
        checker.check(iter(retold(story[0], change)))


ZERO = '{"loss":{"type":"PureDP/1","epsilon":"0/1"},"times":1}'
CHEAP = {
    "less": '{"type":"PureDP/1","epsilon":"1/1000"}',
    "no parts": f'[{{"type":"PureDP/1","epsilon":"1/2"}},{ZERO}]',
    "zCDP": '{"type":"zCDP/1","rho":"1/1000"}',
    "Gaussian": '{"type":"GaussianDP/1","mu":"1/1000"}',
}


@pytest.mark.parametrize("within", [cp.PureDP("0.5"), cp.Filter(cp.ApproxDP("0.5", 0))], ids=["plain sum", "other"])
@pytest.mark.parametrize("cost", CHEAP.values(), ids=CHEAP)
def test_a_delegated_budget_costs_itself_in_its_own_measure_and_as_one_launch(tmp_path, within, cost):
    """A charge of another measure, or by parts, would let a forger grant any budget for nothing."""
    outer = cp.Filter(cp.zCDP(1)) if within == cp.PureDP("0.5") else cp.Filter(cp.ApproxDP(1, 0), by="basic")
    with pages(tmp_path, outer) as session:
        session.grant("ann", within).launch(cp.Laplace("0.4"))
        record = lines(session)
        assert "2 admissions" in sound(record, [], signer_of(session)) or within != cp.PureDP("0.5")
    forged = retold(record, lambda es: [[*e[:12], cost] if e[1] == "delegation" else e for e in es])
    with pytest.raises(checker.DoesNotHold, match="delegated for another cost than itself"):
        checker.check(iter(forged))


FORGERIES = {
    "an answer names another head": lambda es: [[*e[:5], e[5], *e[6:]] if e[1] != "answer" else e for e in es[:-1]],
    "begins with its data": lambda es: [*es, es[0]],
    "no grant to revoke": lambda es: [*es, [0, "revocation", "r", [], "", '["revocation",[]]', *es[-1][6:]]],
    "not lost": lambda es: [*es, [0, "lost", es[2][2], [], "", "", *es[-1][6:]]],
    "another record": lambda es: [*es, [0, "recovery", "", [], "", f'[{len(es)},"{"0" * 64}",0,""]', *es[-1][6:]]],
}


@pytest.mark.parametrize("name", list(FORGERIES)[1:])
def test_a_protocol_that_no_service_follows_does_not_hold(story, name):
    with pytest.raises(checker.DoesNotHold):
        checker.check(iter(retold(story[0], FORGERIES[name])))


# ---- signatures

TORSION = checker._TORSION
SMALL = [0, 1, checker._PRIME - 1, TORSION, checker._PRIME - TORSION]
WRONG_KEYS = {
    **{f"small order {y % 997}": y | sign << 255 for y in SMALL for sign in (0, 1)},
    **{f"not canonical {y}": checker._PRIME + y for y in (0, 1, 3, 18)},
}


def test_the_listed_points_are_those_whose_order_divides_eight():
    """On -x^2 + y^2 = 1 + d x^2 y^2; doubled three times each is the neutral point, and these are all eight."""
    p, d = checker._PRIME, -121665 * pow(121666, -1, checker._PRIME)

    def doubled(x, y):
        product = d * x * x * y * y
        return 2 * x * y * pow(1 + product, -1, p) % p, (y * y + x * x) * pow(1 - product, -1, p) % p

    points = set()
    for y in SMALL:
        square = (y * y - 1) * pow(d * y * y + 1, -1, p) % p
        root = pow(square, (p + 3) // 8, p)
        root = root if (root * root - square) % p == 0 else root * pow(2, (p - 1) // 4, p) % p
        assert (root * root - square) % p == 0
        points |= {(root, y), (-root % p, y)}
    assert len(points) == 8 == len({doubled(*point) for point in points}) * 2
    for point in points:
        assert doubled(*doubled(*doubled(*point))) == (0, 1)


@pytest.mark.parametrize("y", WRONG_KEYS.values(), ids=WRONG_KEYS)
def test_keys_under_which_anything_is_signed_are_refused(story, y):
    key = y.to_bytes(32, "little").hex()
    with pytest.raises(checker.DoesNotHold, match="small order"):
        sound(story[0], story[1], key)
    with pytest.raises(checker.DoesNotHold, match="small order"):
        checker.check(iter(retold(story[0], lambda entries: named(entries, key))))


@pytest.mark.parametrize("key", ["", "00", "zz" * 32, "AB" * 32, "0" * 63 + "\n"])
def test_what_is_no_key_is_refused(story, key):
    with pytest.raises(checker.DoesNotHold, match="64 lower-case hexadecimal digits"):
        sound(story[0], [], key)


def named(entries, key, signature=""):
    """The entries, and one that names another signer."""
    return [*entries, [0, "signer", "", [], key, signature, 0, "", 0, "", "", "", ""]]


def forged(receipt, signer, **said):
    """A receipt that says something else, signed by somebody."""
    text = {**json.loads(receipt["receipt"]), **said}
    return signer.sign(Receipt(**{**text, "path": tuple(text["path"])}))._asdict()


def test_a_signer_that_the_one_before_has_not_named_is_refused(story):
    record, _, signer = story
    thief = Signer(bytes(32))
    for signature in (
        "",
        thief.sign_successor(thief.public, bytes(32)),
        signer.sign_successor(thief.public, bytes(32)),
    ):
        entries = retold(record, lambda entries, signed=signature: named(entries, thief.public, signed), signer)
        for key in (None, signer.public, thief.public):
            with pytest.raises(checker.DoesNotHold, match="the one before has not signed that"):
                checker.check(iter(entries), [], key)


def test_a_record_of_a_forger_who_names_the_service_as_the_next_signer_is_nobodys(story):
    """Anyone can name anyone: that vouches for what comes after, not for what was before."""
    record, receipts, signer = story
    thief = Signer(bytes(32))

    def change(entries):
        return [[*e[:4], thief.public, *e[5:]] if e[1] == "signer" else e for e in entries]

    own = retold(record, change)
    head = bytes.fromhex(json.loads(own[0])["head"]["hash"])
    theirs = retold(own, lambda entries: named(entries, signer.public, thief.sign_successor(signer.public, head)))
    unsigned = [json.dumps({k: v for k, v in json.loads(theirs[0]).items() if k != "signature"}), *theirs[1:]]
    read = [json.loads(line)["entry"] for line in unsigned[1:]]
    said = json.loads(receipts[0]["receipt"])
    about = {"entry": sha256(read[said["number"] - 1].encode()).hexdigest()}
    heads, at = [], bytes.fromhex(said["ledger"])
    for text in read:
        at = sha256(at + text.encode()).digest()
        heads.append(at.hex())
    lie = forged(receipts[0], thief, **about, head=heads[said["head_number"] - 1])
    with pytest.raises(checker.DoesNotHold, match="no key that counts here has signed this receipt"):
        checker.check(iter(unsigned), [lie], signer.public)
    with pytest.raises(checker.DoesNotHold, match="no service vouches for it"):
        checker.check(iter(unsigned), [], signer.public)
    with pytest.raises(checker.DoesNotHold, match="not that of its signer"):
        checker.check(iter(theirs), [lie], signer.public)


def test_receipts_are_not_checked_by_a_key_of_the_records_choice(story):
    with pytest.raises(checker.DoesNotHold, match="say --signer KEY"):
        checker.check(iter(story[0]), story[1])
    with pytest.raises(checker.DoesNotHold, match="does not name the signer that was given"):
        sound(story[0], story[1], Signer(bytes(32)).public)


def test_a_record_without_its_signature_is_vouched_for_by_receipts_alone(story):
    header = json.loads(story[0][0])
    del header["signature"]
    bare = [json.dumps(header), *story[0][1:]]
    assert "the record is not signed: receipts vouch for entries 1 to" in sound(bare, story[1][:1], story[2].public)
    with pytest.raises(checker.DoesNotHold, match="no service vouches for it"):
        sound(bare, [], story[2].public)


def test_a_session_that_is_given_another_name_is_not_the_one_that_was_signed(story):
    header = {**json.loads(story[0][0]), "session": "other"}
    with pytest.raises(checker.DoesNotHold, match="not that of its signer"):
        sound([json.dumps(header), *story[0][1:]], [], story[2].public)


def test_a_signature_that_was_bent_is_not_one(story):
    order = 2**252 + 27742317777372353535851937790883648493
    whole = bytes.fromhex(story[1][0]["signature"])
    bent = whole[:32] + (int.from_bytes(whole[32:], "little") + order).to_bytes(32, "little")
    for signature in (bent.hex(), story[1][0]["signature"].upper(), story[1][0]["signature"] + " ", ""):
        with pytest.raises(checker.DoesNotHold, match="no key that counts here"):
            sound(story[0], [{**story[1][0], "signature": signature}], story[2].public)


# ---- receipts


def test_two_receipts_for_one_question_that_differ_are_a_lie(story):
    record, receipts, signer = story
    lie = forged(receipts[0], signer, data="51")
    assert sound(record, [lie], signer.public), "alone it cannot be told: the data version is the service's word"
    with pytest.raises(checker.DoesNotHold, match="say different things"):
        sound(record, [receipts[0], lie], signer.public)
    with pytest.raises(checker.DoesNotHold, match=r"say different things|not the one on record"):
        sound(record, [receipts[0], forged(receipts[0], signer, answer="0" * 64)], signer.public)


def test_one_receipt_that_is_given_twice_counts_once(story):
    said = sound(story[0], [story[1][0], story[1][1], story[1][0]], story[2].public)
    assert said.endswith("1 of the receipts were given twice; 2 receipts hold")


def test_the_boundary_between_nonce_and_answer_cannot_be_moved(story):
    shown = story[1][0]["disclosed"]
    longer = {"nonce": shown["nonce"] + shown["answer"][:1].encode().hex(), "answer": shown["answer"][1:]}
    shorter = {"nonce": shown["nonce"][:-2], "answer": chr(int(shown["nonce"][-2:], 16)) + shown["answer"]}
    for other in (longer, shorter, {**shown, "nonce": shown["nonce"].upper() + " "}):
        with pytest.raises(checker.DoesNotHold):
            sound(story[0], [{**story[1][0], "disclosed": other}], story[2].public)


@pytest.mark.parametrize(
    "change", [{"who": "bob"}, {"path": [1]}, {"session": "other"}, {"ledger": "0" * 64}, {"number": 9}]
)
def test_a_service_cannot_give_one_question_to_another_principal_place_or_record(story, change):
    with pytest.raises(checker.DoesNotHold):
        sound(story[0], [forged(story[1][0], story[2], **change)], story[2].public)


def test_the_answer_of_another_question_is_not_the_one_on_record(story):
    record, receipts, signer = story
    first, other = (json.loads(one["receipt"]) for one in receipts[:2])
    for swapped in (
        {"answer": other["answer"]},
        {"head": other["head"], "head_number": other["head_number"]},
        {"head": other["head"], "head_number": other["head_number"], "answer": other["answer"]},
    ):
        with pytest.raises(checker.DoesNotHold, match=r"not the one on record|say different"):
            sound(record, [forged(receipts[0], signer, **swapped)], signer.public)
    assert first["answer"] != other["answer"]


def test_a_cut_record_denies_its_receipts_and_is_no_longer_what_was_exported_before(story):
    record, receipts, signer = story
    cut = retold(record, lambda entries: entries[:-2], signer)
    assert "signed by the service" in sound(cut, receipts[:1], signer.public), "a service can sign less than it has"
    with pytest.raises(checker.DoesNotHold, match="the record is older, or was cut"):
        sound(cut, receipts, signer.public)
    with pytest.raises(checker.DoesNotHold, match="not the beginning of this one"):
        checker.check(iter(cut), [], signer.public, record[0])
    assert "signed by the service" in checker.check(iter(record), [], signer.public, cut[0])


def test_two_records_that_part_at_an_entry_are_found_by_the_earlier_one(story):
    record, _, signer = story

    def other(entries):
        return [*entries[:-1], [*entries[-1][:8], entries[-1][8] + 1, *entries[-1][9:]]]

    fork = retold(record, other, signer)
    with pytest.raises(checker.DoesNotHold, match="one of them is a fork"):
        checker.check(iter(fork), [], signer.public, record[0])


def test_entries_of_another_ledger_of_the_service_do_not_fit(story, tmp_path):
    with new(tmp_path) as session:
        session.launch(cp.Laplace("0.4", asks=2)).ask(cp.count(), id="a")
        theirs, receipt, key = lines(session), as_json(session, "a"), signer_of(session)
    for mixed in (
        [story[0][0], *theirs[1:]],
        [theirs[0], *story[0][1 : len(theirs)]],
        [*theirs, *story[0][len(theirs) :]],
    ):
        for handed in ([], [receipt], story[1]):
            with pytest.raises(checker.DoesNotHold):
                sound(mixed, handed, key)


def test_a_signer_that_was_put_into_the_database_is_refused(tmp_path):
    with new(tmp_path) as session:
        session.launch(cp.Laplace("0.4"))
        store = session._engine.ledger._store
        head = store.begin("session")
        unit = ChangeSet(store, "session", Head(*head))
        unit.append("signer", "", (), Signer(bytes(32)).public, "")
        store.write(unit)
        store.commit()
    with pytest.raises(LedgerTampered, match="names a signer, and the one before it has not signed that"):
        new(tmp_path)


# ---- where it runs


@pytest.mark.parametrize("how", ["module", "in place", "copied beside modules of the same names", "copied, isolated"])
def test_the_checker_runs_wherever_its_file_is(story, tmp_path, how):
    """Beside it lies a package `numbers`, which `fractions` would import in the place of the standard library's."""
    record, receipts, signer = story
    (tmp_path / "record.jsonl").write_text("\n".join(record) + "\n")
    (tmp_path / "receipt.json").write_text(json.dumps(receipts[0]))
    file = checker.__file__
    if how.startswith("copied"):
        (tmp_path / "beside" / "numbers").mkdir(parents=True)
        file = shutil.copy(file, tmp_path / "beside")
        for name in ("json.py", "numbers/__init__.py", "dataclasses.py"):
            (tmp_path / "beside" / name).write_text("raise SystemExit('this is not the standard library')")
    start = {"module": ["-m", "counterpoint.checker"], "copied, isolated": ["-I", file]}.get(how, [file])
    command = [sys.executable, *start, "--signer", signer.public, "record.jsonl", "receipt.json"]
    environment = {**os.environ, "PYTHONPATH": str(Path(checker.__file__).parents[1])}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.endswith("1 receipt holds\n"), done.stderr
    command[command.index("--signer") + 1] = "00" * 32
    assert subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False).returncode == 1


def test_the_command_line_explains_itself_and_refuses_what_it_does_not_know(story, tmp_path, capsys):
    (tmp_path / "record.jsonl").write_text("\n".join(story[0]) + "\n")
    with pytest.raises(SystemExit) as refused:
        checker.main([])
    assert refused.value.code == 2
    assert checker.main([str(tmp_path / "nothing")]) == 1 and checker.main([str(tmp_path)]) == 1
    capsys.readouterr()
    earlier = ["--earlier", str(tmp_path / "record.jsonl")]
    assert checker.main([*earlier, "--signer", f" {story[2].public.upper()}\n", str(tmp_path / "record.jsonl")]) == 0
    assert "signed by the service" in capsys.readouterr().out
