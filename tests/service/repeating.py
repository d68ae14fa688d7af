"""Requests that are sent several times, under the same ids and in another order, and what must have come of them."""

import random
from collections import defaultdict
from typing import NamedTuple

import httpx


class Questions(NamedTuple):
    """Questions of one price, of which a budget of epsilon 1 holds so many."""

    fit: int = 100

    @property
    def body(self):
        """One of them, as it is sent."""
        return {"request": {"request": "count", "where": "age > 35"}, "epsilon": f"1/{self.fit}"}

    def shuffled(self, requests, seed):
        """Ids for more questions than the budget holds, each several times, in an order that is not theirs."""
        ids = [f"question {number}" for number in range(self.fit + self.fit // 10)]
        order = [ids[number % len(ids)] for number in range(requests)]
        random.Random(seed).shuffle(order)  # noqa: S311 - the order of requests is no secret
        return order

    def check(self, answers):
        """Each id was answered always alike or refused always, and as many were answered as the budget holds."""
        by_id = defaultdict(set)
        for id, status, exact in answers:
            assert status in (201, 409), (id, status)
            by_id[id].add((status, exact))
        assert all(len(found) == 1 for found in by_id.values()), [one for one in by_id.values() if len(one) > 1]
        assert sum(status == 201 for found in by_id.values() for status, _ in found) == self.fit


def seen(id, got):
    """What came of a request."""
    return id, got.status_code, got.json()["exact"] if got.status_code == 201 else None


def patient(client, key, method, url, *, json=None, id=None):
    """Send a request until it is answered: by its id it can be repeated whenever it is not known what became of it."""
    headers = {"Authorization": f"Bearer {key}", **({} if id is None else {"Idempotency-Key": id})}
    while True:
        try:
            got = client.request(method, url, json=json, headers=headers)
        except httpx.TransportError:
            continue
        if got.status_code < 500:
            return got
        assert got.json()["type"].startswith("urn:counterpoint:"), got.text
