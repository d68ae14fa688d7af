"""A database server that is restarted under load: every request is finished by its id, and charged once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import psycopg
import pytest
from tests.service.postmaster import own_server
from tests.service.process import Served
from tests.service.repeating import Questions, patient, seen

from counterpoint.ledger.sealing import MasterKey

PEOPLE = "CREATE TABLE people AS SELECT n AS person, n % 90 AS age FROM generate_series(1, 50) AS n"
CONFIG = """
ledger = "{url}"
key_file = "the.key"
data_key_file = "data.key"
witness = "witness"
limits = {{ per_second = 1000000, burst = 1000000, refusal = 0, at_once = 10000 }}
[tables.people]
source = "{url}"
relation = "people"
unit = "person"
rows_per_unit = 1
budget = {{ measure = "PureDP", epsilon = 1 }}
columns.age = {{ type = "number", low = 0, high = 100 }}
"""


@pytest.mark.parametrize(
    ("questions", "requests", "clients", "restarts"),
    [(Questions(20), 44, 4, 2), pytest.param(Questions(100), 10_000, 64, 20, marks=pytest.mark.long)],
    ids=["few", "many"],
)
def test_a_restarted_server_loses_and_repeats_nothing(tmp_path, questions, requests, clients, restarts):
    """The ledger and the data are both in it. It is stopped in order, and as in a crash, in turns."""
    for name in ("the.key", "data.key"):
        MasterKey.create(tmp_path / name)
    lock, answers, modes = threading.Lock(), [], cycle(("fast", "immediate"))
    with own_server() as (url, restart):
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(PEOPLE)
        (tmp_path / "counterpoint.toml").write_text(CONFIG.format(url=url))
        with Served(tmp_path, "--config", "counterpoint.toml", "--workers", 2) as service, service.client() as client:

            def call(method, url, **more):
                return patient(client, service.key, method, url, **more)

            def ask(id):
                answer = seen(id, call("POST", "/v1/sessions/people/questions", json=questions.body, id=id))
                with lock:
                    answers.append(answer)
                    if len(answers) % (requests // (restarts + 1)) == 0 and len(answers) < requests:
                        restart(next(modes))  # while the other clients' requests run

            with ThreadPoolExecutor(clients) as threads:
                list(threads.map(ask, questions.shuffled(requests, restarts)))
            restart(next(modes))  # between requests
            ids = {id for id, *_ in answers}
            answers += [
                seen(id, call("POST", "/v1/sessions/people/questions", json=questions.body, id=id)) for id in ids
            ]
            questions.check(answers)
            assert call("GET", "/v1/sessions/people").json()["loss"]["text"] == "PureDP(1)"
            assert call("POST", "/v1/data-sets/people/verification").json()["holds"]
