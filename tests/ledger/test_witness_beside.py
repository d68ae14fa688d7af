"""A witness that is copied, or rolled back, along with its ledger: who keeps it there is told, once."""

import logging
import os

import pytest
from tests.ledger.places import DATA
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.ledger import location as places
from counterpoint.ledger.sealing import MasterKey


@pytest.fixture
def kept(tmp_path):
    """How a ledger is kept with a witness in another folder of this device, or wherever it is said to be."""
    for name in ("books", "elsewhere"):
        (tmp_path / name).mkdir()
    MasterKey.create(tmp_path / "the.key")

    def keep(witness=tmp_path / "elsewhere" / "witness"):
        return cp.Durable(tmp_path / "books" / "ledger.db", key_file=tmp_path / "the.key", witness=witness)

    return keep


@pytest.fixture
def other_device(tmp_path, monkeypatch):
    """As if each folder were a device of its own."""
    device = places._device
    monkeypatch.setattr(places, "_device", lambda path: device(path) and hash(os.path.dirname(path)))


def opened(place, names, caplog):
    """What is logged while sessions are opened, each twice."""
    caplog.set_level(logging.WARNING, "counterpoint.ledger")
    for name in (*names, *names):
        cp.Session(Numbers(DATA), cp.PureDP(1), ledger=place, name=name).close()
    return [record.getMessage() for record in caplog.records if record.name == "counterpoint.ledger"]


@pytest.mark.parametrize("witness", ["the default", "the folder", "a link", "the device"])
def test_a_witness_beside_its_ledger_is_warned_of_once(kept, witness, tmp_path, monkeypatch, caplog):
    monkeypatch.delenv("COUNTERPOINT_WITNESS", raising=False)
    (tmp_path / "elsewhere" / "link").symlink_to(tmp_path / "books" / "witness")
    where = {"the default": None, "the folder": tmp_path / "books" / "witness"}
    where |= {"a link": tmp_path / "elsewhere" / "link", "the device": tmp_path / "elsewhere" / "witness"}
    (said,) = opened(kept(where[witness]), ("people", "again"), caplog)
    assert ("on the device" if witness == "the device" else "in the folder") in said and "another disk" in said


def test_one_on_another_device_and_one_at_an_address_are_not_warned_of(kept, other_device, caplog):
    assert kept("https://witness.example").witness_beside is None
    assert opened(kept(), ("people",), caplog) == []


def test_a_ledger_in_postgresql_is_not_on_a_device_of_ours(kept):
    assert cp.Durable("postgresql://db.example/ledgers", witness="witness").witness_beside is None


def test_an_old_copy_of_a_folder_with_ledger_and_witness_is_not_noticed(tmp_path):
    """What the warning is about, so that the page that says so is right."""
    place = cp.Durable(tmp_path / "ledger.db", witness=tmp_path / "witness")
    cp.Session(Numbers(DATA), cp.PureDP(1), ledger=place, name="people").close()
    old = {name: (tmp_path / name).read_bytes() for name in ("ledger.db", "witness")}
    with cp.open(place, "people", source=Numbers(DATA)) as s:
        s.launch(cp.Laplace(1))
    for name, content in old.items():
        (tmp_path / name).write_bytes(content)
    with cp.open(place, "people", source=Numbers(DATA)) as s:
        assert s.loss == cp.PureDP(0)
