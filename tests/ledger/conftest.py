"""Every test of a ledger runs on all kinds of them (`place`), or on those that outlive a process (`lasting`)."""

import pytest
from tests.ledger.places import DURABLE, KINDS, Place


@pytest.fixture(params=KINDS)
def place(request, tmp_path):
    return Place(request.param, tmp_path)


@pytest.fixture(params=DURABLE)
def lasting(request, tmp_path):
    return Place(request.param, tmp_path)


@pytest.fixture
def postgres(tmp_path):
    return Place("postgres", tmp_path)
