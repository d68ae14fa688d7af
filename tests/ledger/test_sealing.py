"""What is secret is sealed, bound to its place, and useless without the key; charges are readable without it."""

import copy
import logging
import os
import pickle
import resource
import signal
from collections import Counter

import msgspec
import pytest
from tests.ledger.crashes import in_child
from tests.ledger.places import DATA, Place
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.errors import InvalidParameter, SecretLeak, Unsealable
from counterpoint.ledger import sealing
from counterpoint.ledger.commands import AskCommand
from counterpoint.ledger.ledger import Intent
from counterpoint.ledger.sealed_rows import read_row, stored_row
from counterpoint.ledger.sealing import DataKeys, MasterKey, _place
from counterpoint.ledger.state import LaunchRecord


@pytest.fixture
def keys():
    master = MasterKey(os.urandom(32))
    return DataKeys("people", master, (DataKeys.fresh("people", 0, master),))


def test_a_blob_opens_only_where_it_was_sealed(keys):
    blob = keys.seal(b"secret", "state", (0, "str:CA"), 3)
    assert keys.unseal(blob, "state", (0, "str:CA"), 3) == b"secret"
    for place in (("seed", (0, "str:CA"), 3), ("state", (0,), 3), ("state", (0, "str:CA"), 4), ("state", (0,))):
        with pytest.raises(Unsealable):
            keys.unseal(blob, *place)


def test_a_changed_blob_does_not_open(keys):
    blob = keys.seal(b"secret", "state", (0,), 3)
    for index in range(len(blob)):
        changed = blob[:index] + bytes([blob[index] ^ 1]) + blob[index + 1 :]
        with pytest.raises(Unsealable):
            keys.unseal(changed, "state", (0,), 3)
    for cut in range(len(blob)):
        with pytest.raises(Unsealable):
            keys.unseal(blob[:cut], "state", (0,), 3)


def test_no_two_blobs_are_alike(keys):
    """The same nonce twice under one key would open both blobs."""
    blobs = [keys.seal(b"secret", "state", (0,), 3) for _ in range(50)]
    wrapped = [MasterKey(bytes(32)).wrap(bytes(32), b"place") for _ in range(50)]
    assert len({blob[19:31] for blob in blobs}) == len({blob[:12] for blob in wrapped}) == 50


def test_a_salt_serves_a_number_of_blobs_and_no_more(keys, monkeypatch):
    """Whoever opens the same ledger takes another one at once; blobs of all salts open, however many there were."""
    monkeypatch.setattr(sealing, "SEALS", 3)
    monkeypatch.setattr(sealing, "_SALTS", 2)
    again = DataKeys("people", keys._master, keys._wrapped)
    blobs = [each.seal(b"%d" % number, "state", (0,), 3) for each in (keys, again) for number in range(10)]
    served = Counter(blob[3:19] for blob in blobs)
    assert sorted(served.values()) == [1, 1, 3, 3, 3, 3, 3, 3]
    assert [keys.unseal(blob, "state", (0,), 3) for blob in blobs] == [b"%d" % number for number in range(10)] * 2


def test_another_datasets_key_opens_nothing():
    master = MasterKey(bytes(32))
    wrapped = DataKeys.fresh("people", 0, master)
    assert not DataKeys("salaries", master, (wrapped,)).usable and DataKeys("people", master, (wrapped,)).usable
    assert not DataKeys("people", master, (DataKeys.fresh("people", 0, master), wrapped)).usable, "each has its number"


def test_a_blob_of_another_dataset_does_not_open_even_with_the_same_key():
    master, key = MasterKey(bytes(32)), bytes(32)
    people, salaries = (DataKeys(name, master, (master.wrap(key, _place(name, 0)),)) for name in ("people", "salaries"))
    blob = people.seal(b"secret", "state", (0,), 3)
    assert people.unseal(blob, "state", (0,), 3) == b"secret"
    with pytest.raises(Unsealable):
        salaries.unseal(blob, "state", (0,), 3)


@pytest.mark.parametrize("bad", [b"", bytes(31), bytes(33), "k" * 32, bytearray(32), None])
def test_a_key_is_32_bytes(bad):
    with pytest.raises(InvalidParameter, match="32 secret bytes"):
        MasterKey(bad)


def test_a_key_file_is_private_and_never_overwritten(tmp_path):
    file = tmp_path / "k"
    made = MasterKey.create(file)
    assert file.stat().st_mode & 0o777 == 0o600 and MasterKey.from_file(file).name == made.name
    with pytest.raises(InvalidParameter, match="never overwritten"):
        MasterKey.create(file)
    file.chmod(0o644)
    with pytest.raises(Unsealable, match="chmod"):
        MasterKey.from_file(file)
    file.chmod(0o600)
    file.write_text("not a key")
    with pytest.raises(Unsealable, match="64 hexadecimal"):
        MasterKey.from_file(file)
    with pytest.raises(Unsealable, match="cannot be read"):
        MasterKey.from_file(tmp_path / "nowhere")


def test_a_disk_without_room_for_a_key_is_left_without_half_a_key(tmp_path):
    def work(say):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
        try:
            MasterKey.create(tmp_path / "k")
        except InvalidParameter as error:
            say("refused", "no key file can be made" in str(error))

    assert in_child(work) == (["refused True"], True) and not (tmp_path / "k").exists()
    with pytest.raises(InvalidParameter, match="no key file can be made"):
        MasterKey.create(tmp_path / "no" / "folder")


def test_neither_a_key_nor_a_seed_is_shown_or_copied():
    key = MasterKey(b"\xab" * 32)
    assert "abab" not in repr(key) and "\\xab" not in repr(key)
    for secret in (key, DataKeys("people", key, (DataKeys.fresh("people", 0, key),)), begun()):
        assert "abab" not in repr(secret) and "seed" not in repr(secret)
        for deed in (pickle.dumps, copy.deepcopy):
            with pytest.raises((Unsealable, SecretLeak)):
                deed(secret)


def begun():
    """The intent of a launch, in which the seed is the only secret."""
    return Intent("L", b"[]", (0,), 0, 0, b"seed" * 8)


def test_the_environment_gives_a_key(monkeypatch, tmp_path):
    monkeypatch.delenv("COUNTERPOINT_KEY", raising=False)
    monkeypatch.delenv("COUNTERPOINT_KEY_FILE", raising=False)
    assert MasterKey.from_environment() is None
    made = MasterKey.create(tmp_path / "k")
    monkeypatch.setenv("COUNTERPOINT_KEY_FILE", str(tmp_path / "k"))
    assert MasterKey.from_environment().name == made.name
    monkeypatch.setenv("COUNTERPOINT_KEY", "cd" * 32)
    assert MasterKey.from_environment().name == MasterKey(b"\xcd" * 32).name


def asked(place):
    s = place.session()
    noisy = s.launch(cp.Laplace(0.5, asks=5), id="L")
    answer = noisy.ask("apples", id="q")
    s.close()
    return answer


def test_a_wrong_key_halts_the_mechanisms_keeps_the_charges_and_says_what_to_do(lasting):
    answer = asked(lasting)
    right, wrong = lasting.key, lasting.home / "wrong.key"
    MasterKey.create(wrong)
    lasting.key = wrong
    with lasting.reopened() as s:
        assert s.loss == cp.PureDP(0.5) and s.handles[0].halted and "Laplace" in repr(s.handles[0])
        assert [fact.kind for fact in s.history] == ["data", "open", "launch", "ask"]
        for deed in (
            lambda: s.handles[0].ask("apples"),
            lambda: s.handles[0].ask("apples", id="q"),
            lambda: s.launch(cp.Laplace(0.1)),
        ):
            with pytest.raises(Unsealable, match="KEY_FILE"):
                deed()
        assert s.loss == cp.PureDP(0.5), "nothing was charged for what cannot be done"
        s._engine.ledger.verify()
    lasting.key = right
    with lasting.reopened() as s:
        assert s.handles[0].ask("apples", id="q") == answer and isinstance(s.handles[0].ask("apples"), int)


def test_without_a_key_no_ledger_is_made_in_postgres_and_one_is_made_beside_an_sqlite_file(tmp_path, monkeypatch):
    for name in ("COUNTERPOINT_KEY", "COUNTERPOINT_KEY_FILE", "COUNTERPOINT_WITNESS"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "ledger.db"
    with cp.Session(Numbers(DATA), cp.PureDP(1), ledger=str(file)) as s:
        told = s.launch(cp.Laplace(0.5, asks=2)).ask("apples", id="q")
    assert {path.name for path in tmp_path.iterdir()} == {
        f"ledger.db{end}" for end in ("", ".key", ".lock", ".witness")
    }
    with cp.open(file, source=Numbers(DATA)) as s:
        assert s.at((0,)).ask("apples", id="q") == told
    (tmp_path / "ledger.db.key").unlink()
    with cp.open(str(file), source=Numbers(DATA)) as s, pytest.raises(Unsealable, match="no key was given"):
        s.at((0,)).ask("apples", id="q")
    url = Place("postgres", tmp_path).url
    with pytest.raises(Unsealable, match="counterpoint ledger key"):
        cp.Session(Numbers(DATA), cp.PureDP(1), ledger=url)


def test_the_master_key_can_be_changed_and_the_old_one_opens_nothing_any_more(lasting):
    answer = asked(lasting)
    old, new = lasting.key, lasting.home / "new.key"
    s = lasting.reopened()
    s._engine.ledger.rotate(MasterKey.create(new))
    later = s.handles[0].ask("beans", id="later")
    s.close()
    with lasting.reopened() as s, pytest.raises(Unsealable):
        s.handles[0].ask("apples", id="q")
    lasting.key = new
    with lasting.reopened() as s:
        assert s.handles[0].ask("apples", id="q") == answer and s.handles[0].ask("beans", id="later") == later
        s._engine.ledger.verify()
    assert old.exists()


def test_a_key_may_be_changed_more_often_than_a_byte_counts():
    master = MasterKey(bytes(32))
    wrapped = tuple(DataKeys.fresh("people", number, master) for number in range(300))
    first, all_of_them = DataKeys("people", master, wrapped[:1]), DataKeys("people", master, wrapped)
    for keys in (first, all_of_them):
        assert all_of_them.unseal(keys.seal(b"secret", "state", (0,)), "state", (0,)) == b"secret"
    with pytest.raises(Unsealable):
        first.unseal(all_of_them.seal(b"secret", "state", (0,)), "state", (0,))


def test_a_wrong_key_cannot_be_changed_for_another(lasting):
    asked(lasting)
    lasting.key = lasting.home / "wrong.key"
    MasterKey.create(lasting.key)
    with lasting.reopened() as s:
        with pytest.raises(Unsealable):
            s._engine.ledger.rotate(MasterKey(bytes(32)))
        assert s.loss == cp.PureDP(0.5), "and the ledger goes on"
        s._engine.ledger.verify()


def test_who_has_the_old_key_and_an_old_copy_opens_nothing_that_is_sealed_later(lasting):
    asked(lasting)

    def stored():
        found = lasting.sql("SELECT wrapped FROM counterpoint_key WHERE name = 'session' ORDER BY number")
        wrapped = tuple(bytes(row[0]) for row in found)
        ((version, sealed),) = lasting.sql("SELECT version, sealed FROM counterpoint_row WHERE path = '[0]'")
        return wrapped, (bytes(sealed), "state", (0,), version)

    wrapped, before = stored()
    thief = DataKeys("session", MasterKey.from_file(lasting.key), wrapped)
    assert thief.unseal(*before)
    with lasting.reopened() as s:
        s._engine.ledger.rotate(MasterKey.create(lasting.home / "new.key"))
        s.handles[0].ask("beans")
    wrapped, after = stored()
    assert DataKeys("session", MasterKey.from_file(lasting.home / "new.key"), wrapped).unseal(*after)
    with pytest.raises(Unsealable):
        thief.unseal(*after)


def test_two_processes_that_change_the_key_lose_none(lasting):
    """Each opened the ledger before the other changed its key; what was sealed in between still opens."""
    lasting.session().close()
    first, second = lasting.ledger(), lasting.ledger()
    first.rotate(MasterKey.from_file(lasting.key))
    first.close()
    answer = asked(lasting)
    second.rotate(MasterKey.create(lasting.home / "new.key"))
    second.close()
    lasting.key = lasting.home / "new.key"
    with lasting.reopened() as s:
        assert s.handles[0].ask("apples", id="q") == answer


CANARY = 918_273_645_546_372_819
"""So far from everything else that noise does not hide its first digits."""
SEED = b"canary seed, do not show it out!"


def test_how_long_a_sealed_state_or_answer_is_does_not_tell_how_large_its_number(keys):
    def sealed(value):
        mechanism = cp.SparseVector(epsilon=1, threshold=0)
        state = msgspec.structs.replace(mechanism.start(cp.coins.SeededCoins(1)), tau=value)
        return stored_row((0,), LaunchRecord(mechanism, state), keys).sealed

    assert len({len(sealed(value)) for value in (0, 7, -7, 10**6, -(10**12))}) == 1
    assert read_row(
        stored_row((0,), LaunchRecord(cp.Laplace(1), cp.Laplace(1).start(cp.coins.SeededCoins(1))), keys), keys
    ).state


def test_an_answer_of_many_digits_is_sealed_no_longer_than_one_of_few(lasting):
    with lasting.session(cp.PureDP(2), source=Numbers({"none": 0, "many": 10**9})) as session:
        noisy = session.launch(cp.Laplace(epsilon=2, asks=2))
        assert len(f"{noisy.ask('many')}") > len(f"{noisy.ask('none')}")
    answers = lasting.sql("SELECT answer FROM counterpoint_request WHERE request <> 'root'")
    assert len(answers) == 3 and len({len(bytes(answer)) for (answer,) in answers}) == 1


def test_no_secret_lies_in_the_open_anywhere(lasting, caplog, capfd):
    """A marked value, answer and seed; everything run at DEBUG and through errors; then a search."""

    class Flaky(Numbers):
        broken = False

        def resolve(self, pin, prepared):
            if self.broken:
                raise cp.errors.InvalidRequest("the data cannot be reached")
            return super().resolve(pin, prepared)

    texts = []
    with caplog.at_level(logging.DEBUG):
        source = Flaky({"apples": CANARY})
        s = lasting.session(cp.PureDP(10**6), source=source, seeds=lambda: SEED)
        noisy = s.launch(cp.Laplace(10**5, asks=5))
        svt = s.launch(cp.SparseVector(epsilon=10**5, threshold=50))
        answer = noisy.ask("apples", id="q")
        assert str(answer)[:12] == str(CANARY)[:12], "or the search below could not fail"
        svt.ask("beans")
        source.broken = True
        for deed in (
            lambda: noisy.ask("apples", id="left open"),
            lambda: noisy.ask("beans", id="q"),
            lambda: noisy.ask("beans"),
            lambda: s.launch(cp.Laplace(10**7)),
        ):
            with pytest.raises(cp.CounterpointError) as caught:
                deed()
            texts += [str(caught.value), repr(caught.value)]
        (left,) = s._engine.ledger.opened()
        texts += [repr(left), repr(s), repr(noisy), repr(s.history), str(s.certificate()), s._repr_html_()]
        texts += [repr(s._engine.ledger.begin("() q", AskCommand((0,), source.prepare("apples"), None, "v1")))]
    texts.append(caplog.text)
    stored = dumped(lasting)
    s.close()
    stored += dumped(lasting)
    texts += list(capfd.readouterr())
    digits, needle = str(CANARY)[:12], CANARY.to_bytes(8, "big")[:5]
    assert not [text for text in texts if digits in text or "canary seed" in text or SEED.hex() in text]
    for blob in stored:
        assert (
            digits.encode() not in blob and needle not in blob and SEED not in blob and SEED.hex().encode() not in blob
        )


def dumped(place):
    """Every byte of the database, its journal and the witness; for PostgreSQL every value of every table."""
    blobs = [path.read_bytes() for path in place.home.iterdir() if path.suffix != ".key"]
    if place.kind == "postgres":
        for table in ("session", "key", "entry", "row", "request", "items"):
            for row in place.sql(f"SELECT * FROM counterpoint_{table}"):
                blobs += [value if isinstance(value, bytes) else str(value).encode() for value in row]
    return blobs
