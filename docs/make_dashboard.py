"""Draw the screenshots of `guide/dashboard.md`: a service with a made-up story, looked at in Chromium.

    python docs/make_dashboard.py

It needs the extra `dev` and Chromium. The pictures show times and noise, so no two runs draw the same.
"""

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple

import uvicorn
from playwright.sync_api import Browser, sync_playwright

import counterpoint as cp
from counterpoint.service.app import application
from counterpoint.service.identity import Role
from counterpoint.service.registry import Registry

FIGURES = Path(__file__).parent / "figures" / "dashboard"
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]


class Shot(NamedTuple):
    """A screenshot: its file, who looks at which page, how wide and high, and light or dark."""

    file: str
    who: str
    page: str
    size: tuple[int, int]
    scheme: Literal["light", "dark"]


SHOTS = (
    Shot("data-sets", "carol", "/", (1280, 520), "light"),
    Shot("data", "carol", "/data-sets/people", (1280, 1240), "light"),
    Shot("session", "ann", "/sessions/people.0", (1280, 1560), "light"),
    Shot("session-phone", "ann", "/sessions/people.0", (390, 1200), "dark"),
    Shot("grants", "carol", "/grants?revoke=people.1", (1280, 840), "light"),
    Shot("people", "carol", "/people", (1280, 900), "light"),
    Shot("in-words", "carol", "/sessions/people/in-words", (1280, 1400), "light"),
    Shot("history", "olga", "/history", (1280, 900), "light"),
    Shot("ledger", "olga", "/ledger", (1280, 720), "dark"),
)
PEOPLE = {"carol": Role.CUSTODIAN, "ann": Role.ANALYST, "bob": Role.ANALYST, "olga": Role.AUDITOR}


def people() -> cp.Table:
    """The made-up table of the examples."""
    columns = {"age": cp.number(0, 100), "state": cp.category(["CA", "NY", "TX"])}
    return cp.Table(cp.datasets.people(), unit="person_id", rows_per_unit=1, columns=columns, key=bytes(32))


def story(registry: Registry) -> None:
    """Two analysts, one stream, a refusal, a partition and a revoked grant."""
    visits = cp.Stream(fields={"page": cp.category(["home", "shop"])})
    registry.register("people", people, cp.Filter(cp.ApproxDP(3, 1e-6)))
    registry.register("visits", lambda: visits, cp.Filter(cp.PureDP(2)))
    whole, now = registry.data_set("people").session().acting_as("carol"), datetime.now(UTC)
    ann = whole.grant("ann", cp.PureDP(1), until=now + timedelta(days=20))
    bob = whole.grant("bob", cp.PureDP(0.6), until=now + timedelta(days=3), mechanisms=[cp.Laplace])
    noisy = ann.launch(cp.Laplace(epsilon=0.2, asks=6))
    noisy.ask(cp.count(where="age > 40"))
    checks = ann.launch(cp.SparseVector(0.2, threshold=9000, hits=2))
    for age in (80, 60, 40):
        with suppress(cp.errors.Halted):
            checks.ask(cp.count(where=f"age > {age}"))
        time.sleep(0.5)
    noisy.ask(cp.count(where="age > 65"))
    with suppress(cp.BudgetExceeded):
        ann.launch(cp.Laplace(0.9))
    ann.ask(cp.mean("age"), epsilon=0.1)
    ann.ask(cp.histogram("state"), epsilon=0.05)
    time.sleep(1)
    ann.ask(cp.count(where="age > 99"), epsilon=0.01)
    ann.partition("state", within=cp.PureDP(0.15))["CA"].launch(cp.Laplace(0.1, asks=3)).ask(cp.count())
    bob.launch(cp.Laplace(0.2, asks=3)).ask(cp.count())
    trial = whole.grant("bob", cp.PureDP(0.3))
    trial.launch(cp.Laplace(0.1))
    whole.revoke(trial)
    registry.data_set("visits").session().acting_as("carol").grant("ann", cp.PureDP(1.95))
    visits.extend([{"page": "home"}] * 480)
    registry.verified("people")
    registry.verified("visits")


@contextmanager
def listening(registry: Registry) -> Iterator[str]:
    """The address of the service, on a socket of this machine."""
    server = uvicorn.Server(uvicorn.Config(application(registry), port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def shoot(browser: Browser, address: str, key: str, shot: Shot) -> None:
    """One screenshot, by a browser that signs in."""
    context = browser.new_context(
        base_url=address,
        viewport={"width": shot.size[0], "height": shot.size[1]},
        color_scheme=shot.scheme,
    )
    window = context.new_page()
    window.goto("/")
    window.fill("#key", key)
    window.click("main button")
    window.goto(shot.page)
    window.screenshot(path=FIGURES / f"{shot.file}.png")
    context.close()


def main() -> None:
    """Tell the story, and take the pictures."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        registry = Registry(cp.Durable(str(Path(folder) / "ledger.db")))
        keys = {}
        for name, role in PEOPLE.items():
            registry.identity.add(name, role)
            keys[name] = registry.identity.new_key(name).shown()
        story(registry)
        with listening(registry) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            for shot in SHOTS:
                shoot(browser, address, keys[shot.who], shot)
            browser.close()
        registry.close()


if __name__ == "__main__":
    main()
