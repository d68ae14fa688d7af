"""An operator's first month, against real processes and in a real browser: a declaration that does not fit, the report
on it, its repair by a refresh, two analysts, a second month's rows, a revoked grant, and a ledger that is restored.

The guide's pages lead to each step. The browser is Chromium; without it the test is skipped, visibly.
"""

import html
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from tests.service.process import SOURCES, Served
from tests.service.test_data_pages import plain
from tests.service.test_in_chromium import CHROMIUM, FLAGS

import counterpoint as cp
from counterpoint.client.connect import connect

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")

SURE = 1000
"""At this epsilon the noise of a count is 0 but for one in e^1000."""
CONFIG = """
ledger = "ledger.db"
witness = "witness"
backups = "backups"
[tables.visits]
source = "visits.csv"
unit = "person"
rows_per_unit = 1
budget = { measure = "PureDP", epsilon = 1000000 }
columns.age = { type = "number", low = 0, high = 60 }
columns.state = { type = "category", keys = ["CA", "NY"] }
"""


def write(folder, rows, config, age=80):
    """A month's file: half of the people are older than the first declaration allows."""
    lines = (f"{n},{age if n % 2 else 40},{'CA' if n % 4 else 'WY'}\n" for n in range(rows))
    (folder / "visits.csv").write_text("person,age,state\n" + "".join(lines))
    (folder / "counterpoint.toml").write_text(config)


def command(folder, *words):
    run = [sys.executable, "-m", "counterpoint", *words]
    return subprocess.run(run, capture_output=True, text=True, check=True, cwd=folder, env={"PYTHONPATH": SOURCES})


@contextmanager
def browsing():
    """Opens windows of Chromium, each signed in with a key."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)

        def window(url, key):
            page = browser.new_context(base_url=url, java_script_enabled=False).new_page()
            page.set_default_timeout(30_000)
            page.goto("/")
            page.fill("#key", key)
            page.click("main button")
            page.wait_for_selector("text=Sign out")
            return page

        yield window
        browser.close()


def add_analyst(page, name):
    """Add a person on the People page, grant them a part of the budget from there, and return their key."""
    page.goto("/people")
    page.fill("#name", name)
    page.click("text=Add, and show a key")
    key = page.input_value("#secret")
    page.click(f"text=Grant {name} a budget")
    page.fill("#amount", "100000")
    page.click("text=Grant >> nth=-1")
    page.wait_for_selector(f"td:has-text('{name}')")
    return key


def refresh(page, note):
    """Look at what is configured now, and serve it; the page that was looked at."""
    page.goto("/data-sets/visits")
    page.click("text=Read and check it")
    seen = page.inner_text("main")
    page.fill("#note", note)
    page.click("text=Serve version")
    page.wait_for_selector("text=serving version")
    return seen


def seen_by_analyst(folder, fits):
    """All that an analyst can look at before they ask, where the rows fit their declaration or do not."""
    folder.mkdir()
    write(folder, 200, CONFIG, age=50 if fits else 80)
    with Served(folder, "--config", "counterpoint.toml") as service:
        with connect(service.url, key=service.key) as custodian:
            key = custodian.people.add("ann", "analyst")
            custodian.session("visits").grant("ann", cp.PureDP(1))
        with service.client(service.key) as carol:
            report = carol.get("/v1/data-sets/visits/report").json()
        with service.client(key) as ann:
            token = re.search(r'form_token" value="(\w+)"', ann.get("/sign-in").text)[1]
            ann.post("/sign-in", data={"form_token": token, "key": key})
            paths = ("", "/versions", "/report", "/record")
            api = [ann.get(f"/v1/data-sets/visits{path}") for path in paths]
            pages = [ann.get(path) for path in ("/", "/data-sets/visits", "/sessions/visits.0", "/history", "/metrics")]
            assert [page.status_code for page in (*api, *pages)] == [200, 200, 403, 403, 200, 200, 200, 200, 403]
    texts = [re.sub(r'"at":\d+|' + re.escape(service.url), "", plain(one.text)) for one in (*api, *pages)]
    return texts, report["columns"][1]["above"]


def test_a_first_month_without_a_dead_end(tmp_path):
    with ThreadPoolExecutor(2) as beside:
        worlds = [beside.submit(seen_by_analyst, tmp_path / str(fits), fits) for fits in (True, False)]
        live_a_month(tmp_path)
        (fitting, none), (not_fitting, many) = (world.result() for world in worlds)
    assert (none, many) == (0, 100)
    assert fitting == not_fitting, "nothing of the report reaches an analyst"


def live_a_month(folder):
    write(folder, 400, CONFIG)
    said = command(folder, "data", "check", "visits.csv", "--config", "counterpoint.toml").stdout
    suggested = re.findall(r"suggestion: (columns\..*?)  #", said)
    assert said.startswith("RAW DATA") and len(suggested) == 2 and "'WY' 100" in said

    with browsing() as window:
        with Served(folder, "--config", "counterpoint.toml") as service:
            key = service.key
            carol = window(service.url, key)
            assert "does not fit its declaration" in carol.inner_text("main")
            carol.click("text=See its report")
            page = html.unescape(carol.content())
            assert "For custodians only" in page and all(line in page for line in suggested)
            repaired = "\n".join(line for line in CONFIG.splitlines() if not line.startswith("columns."))
            repaired += "\n".join(["", *suggested, ""])
            (folder / "counterpoint.toml").write_text(repaired)
            assert "2 changes" in refresh(carol, "bounds and keys of the code book")
            assert "does not fit" not in carol.inner_text("main")

            keys = {name: add_analyst(carol, name) for name in ("ann", "bob")}
            with connect(service.url, key=keys["ann"]) as ann, connect(service.url, key=keys["bob"]) as bob:
                first = ann.session("visits").ask(cp.histogram("state"), epsilon=SURE, id="first")
                assert dict(first) == {"CA": 300, "NY": 0, "WY": 100}
                assert round(float(bob.session("visits").ask(cp.mean("age"), epsilon=SURE, id="his"))) == 60

                write(folder, 480, repaired)
                refresh(carol, "the file of February")
                second = ann.session("visits").ask(cp.histogram("state"), epsilon=SURE, id="second")
                assert sum(dict(second).values()) == 480
                assert dict(ann.session("visits").ask(cp.histogram("state"), epsilon=SURE, id="first")) == dict(first)

                carol.goto("/grants")
                carol.click("tr:has-text('bob') >> text=Revoke")
                carol.click("text=Revoke now")
                with pytest.raises(cp.errors.NotAllowed):
                    bob.session("visits").ask(cp.count(), epsilon=SURE)
                with service.client(key) as custodian:
                    backup = custodian.post("/v1/backups").json()["file"]
                ann.session("visits").ask(cp.count(), epsilon=SURE, id="after the backup")

        (folder / "ledger.db").unlink()  # the disk is lost
        shutil.copy(folder / "backups" / backup, folder / "ledger.db")
        with Served(folder, "--config", "counterpoint.toml") as service:
            assert any("not serving visits" in line for line in service.lines)
            carol = window(service.url, key)
            carol.click("text=See what to do")
            carol.fill("#confirm", "visits")
            carol.click("button:has-text('Recover visits')")
            carol.wait_for_selector("text=serving version 3")
            with connect(service.url, key=keys["ann"]) as ann:
                again = {
                    name: ann.session("visits").ask(cp.histogram("state"), epsilon=SURE, id=name)
                    for name in ("first", "second")
                }
                assert (dict(again["first"]), dict(again["second"])) == (dict(first), dict(second))
    checked = command(folder, "ledger", "verify", "ledger.db", "--witness", "witness").stdout
    assert re.search(r"visits: \d+ entries hold", checked)
