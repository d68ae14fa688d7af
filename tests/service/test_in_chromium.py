"""The pages in a real browser, over a socket: grant, launch, ask, be refused, revoke; on a desk and on a phone.

They are skipped, visibly, where there is no Chromium.
"""

import importlib.util
import json
import re
import shutil
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from tests.service.registry import PEOPLE, table

import counterpoint as cp
from counterpoint import checker
from counterpoint.service.app import application
from counterpoint.service.registry import Registry

HAS_AXE = importlib.util.find_spec("axe_playwright_python") is not None
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")


@contextmanager
def listening(registry):
    """The address of the service on a socket of this machine, in a thread."""
    server = uvicorn.Server(uvicorn.Config(application(registry), port=0, log_level="error", ws="none", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        for _ in range(600):
            if server.started:
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def chromium():
    """One browser for all tests here; each person has a window of their own in it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def registry(tmp_path):
    """A registry with one data set."""
    made = Registry(cp.Durable(str(tmp_path / "ledger.db")))
    made.register("people", table, cp.Filter(cp.PureDP(4)))
    yield made
    made.close()


@pytest.fixture
def desk(registry, chromium):
    """Opens the service in windows of Chromium, each signed in as one person; whatever a page complains of fails."""
    keys = {}
    for name, role in PEOPLE.items():
        registry.identity.add(name, role)
        keys[name] = registry.identity.new_key(name).shown()
    complaints, contexts = [], []
    with listening(registry) as address:

        def window(who, width=1440, scheme="light", script=True):
            context = chromium.new_context(
                base_url=address,
                viewport={"width": width, "height": 900},
                color_scheme=scheme,
                java_script_enabled=script,
            )
            contexts.append(context)
            page = context.new_page()
            page.set_default_timeout(30_000)
            page.on("console", lambda message: complaints.append(message.text))
            page.goto("/")
            page.fill("#key", keys[who])
            page.click("main button")
            page.wait_for_selector("text=Sign out")
            return page

        yield window
        for context in contexts:
            context.close()
    assert [said for said in complaints if "409" not in said] == []  # Chromium notes that a launch was refused


def test_grant_launch_ask_refuse_revoke(desk, registry):
    carol = desk("carol")
    carol.goto("/grants")
    carol.select_option("#to", "ann")
    carol.fill("#amount", "1")
    carol.click("text=Grant >> nth=-1")
    carol.wait_for_selector("a:text-is('people.0')")

    ann = desk("ann", script=False)  # readable and usable without script
    ann.click("a.name")
    ann.wait_for_selector("text=Nothing was launched yet")
    ann.fill("#mechanism", "Laplace(epsilon=0.5, asks=3)")
    ann.click("button[value=launch]")
    ann.fill("#asked", 'count(where="age > 35")')
    ann.click("text=Ask, for free")
    ann.wait_for_selector(".answers .value")
    assert re.fullmatch(r"-?[\d,]+", ann.inner_text(".answers .value"))
    with ann.expect_download() as download:
        ann.click("text=Receipt >> nth=-1")
    receipt = json.loads(Path(download.value.path()).read_text())
    record = registry.data_set("people").session().record()
    assert checker.check(iter(record), [receipt], registry.signer).endswith("1 receipt holds")

    ann.fill("#question", "count()")
    ann.check("input[value=error]")
    ann.fill("#amount", "50")
    ann.click("button[value='quote a question']")
    assert "Fits" in ann.inner_text(".verdict")

    ann.fill("#mechanism", "Laplace(epsilon=0.9)")
    ann.click("button[value=launch]")
    assert "At most PureDP(0.5) would fit" in ann.inner_text(".refusal")

    carol.click("text=Revoke")
    carol.wait_for_selector("text=stop at once")
    carol.click("text=Revoke now")
    carol.wait_for_selector("text=Recount")
    ann.goto("/sessions/people.0")
    assert "This grant was revoked" in ann.inner_text("main") and ann.query_selector("#mechanism") is None
    carol.click("text=Recount")
    carol.goto("/")
    assert "0.5 of 4 lost" in carol.inner_text("main")


def test_a_large_session_is_walked_through_and_its_order_traced(desk, registry):
    session = registry.data_set("people").session().acting_as("carol")
    handles = [session.launch(cp.Laplace("0.1", asks=2)) for _ in range(32)]
    for handle in handles:
        handle.ask(cp.count())
    page = desk("carol", script=False)
    page.goto("/sessions/people?by=order")
    assert "All 64 events" in page.inner_text(".zoom")
    page.click(".zoom >> text=Closer")
    assert "Events 40 to 64 of 64" in page.inner_text(".zoom")
    trace = page.locator(".cp-wide .trace")
    assert not trace.locator("line").first.is_visible()
    page.check("#trace")
    assert trace.locator("line").first.is_visible(), "without script"
    page.click(".strip a >> nth=0", position={"x": 2, "y": 20})
    assert "Events 1 to 25 of 64" in page.inner_text(".zoom")
    page.click("text=Keep current")
    page.wait_for_selector("text=loaded again every")
    page.click(".live >> text=Stop")
    page.wait_for_selector("#mechanism")


def test_a_person_is_added_signs_in_with_the_key_that_was_shown_and_is_ended(desk, registry):
    carol = desk("carol", script=False)
    carol.goto("/people")
    carol.fill("#name", "dora")
    carol.click("text=Add, and show a key")
    key = carol.input_value("#secret")
    carol.click("text=I have copied it")
    assert carol.query_selector("#secret") is None
    carol.context.clear_cookies()
    carol.goto("/people")
    carol.fill("#key", key)
    carol.click("main button")
    assert "dora" in carol.inner_text(".who") and "People" not in carol.inner_text(".top nav")

    other = desk("carol")
    other.goto("/people")
    other.click("[aria-label='End dora']")
    other.click("button:text-is('End dora')")
    other.wait_for_selector(".people .gone")
    carol.goto("/")
    assert carol.url.endswith("/sign-in")


PAGES = (
    *("/", "/sessions/people", "/sessions/people.0", "/history", "/grants", "/ledger"),
    *("/people", "/people?do=new+key&of=ann", "/people?do=end&of=bob", "/sessions/people/in-words"),
    "/data-sets/people",
)
NAMELESS = """[...document.querySelectorAll("a, button, input:not([type=hidden]), select, textarea")].filter(one =>
    !(one.getAttribute("aria-label") || one.textContent.trim() || (one.labels && one.labels.length))
).map(one => one.outerHTML)"""
"""What a screen reader would have no name for."""
TWICE = """[...document.querySelectorAll("[id]")].map(one => one.id).filter((id, at, all) => all.indexOf(id) != at)"""


def violations(page):
    """What axe finds wrong for people who read with other means than their eyes: rule, and the first element."""
    if not HAS_AXE:
        return []
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [(one["id"], one["nodes"][0]["html"][:200]) for one in found]


@pytest.mark.parametrize("used", [False, True], ids=["without data", "with data"])
def test_every_page_fits_a_phone_and_a_desk_in_light_and_dark(desk, used):
    carol = desk("carol")
    carol.goto("/grants")
    carol.fill("#amount", "1")
    carol.click("text=Grant >> nth=-1")
    if used:
        carol.goto("/sessions/people")
        carol.fill("#question", "histogram('state')")
        carol.click("button[value=ask]")
        carol.wait_for_selector(".answers .value")
    for width, scheme in ((390, "dark"), (1440, "light")):
        page = desk("carol", width, scheme)
        for path in PAGES:
            assert page.goto(path).status == 200
            assert (page.evaluate(NAMELESS), page.evaluate(TWICE)) == ([], []), path
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, (path, width)
            paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert paper == {"light": "rgb(250, 249, 246)", "dark": "rgb(16, 18, 23)"}[scheme]
            assert violations(page) == [], (path, width, scheme)
        page.goto("/data-sets/people")
        page.click("text=Read and check it")
        assert violations(page) == [], (width, scheme)
    if not HAS_AXE:
        pytest.skip("all but axe has passed: axe-playwright-python is not installed")


def test_signing_out_leaves_nothing_to_go_back_to(desk):
    ann = desk("ann")
    cookie = ann.context.cookies()[0]
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    assert ann.evaluate("document.cookie") == ""
    ann.click("text=Sign out")
    ann.wait_for_selector("#key")
    ann.goto("/history")
    assert ann.url.endswith("/sign-in")
