"""The story that `counterpoint demo` tells: a budget, interleaved mechanisms, a refusal, a stream, a crash, a graph, a
proof, and a service with two analysts.

It runs on synthetic data, with DuckDB and SQLite embedded, on ledgers in a temporary directory. The crash is that of a
second process. The service is what an operator runs (`counterpoint serve`); its noise takes no seed.

>>> from rich.console import Console
>>> import io
>>> tell(seed=1, console=Console(file=io.StringIO()))

>>> printed = ["serving people at http://127.0.0.1:8000", "the key of 'custodian': cp_...", f"signing with {'ab' * 32}"]
>>> _announced(iter(printed)).url
'http://127.0.0.1:8000'
"""

import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from csv import DictReader
from fractions import Fraction
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console
from rich.panel import Panel
from rich.table import Table as Grid

import counterpoint as cp
from counterpoint.coins.coins import Coins
from counterpoint.coins.enumerated import EnumeratedCoins
from counterpoint.coins.secure import SecureCoins
from counterpoint.composition.fixed import compose
from counterpoint.continual.counter import Counter
from counterpoint.encoding import digest
from counterpoint.errors import BudgetExceeded, InvalidParameter, NotAllowed
from counterpoint.ledger.location import Durable
from counterpoint.ledger.memory import MemoryLedger
from counterpoint.ledger.open import durable
from counterpoint.ledger.sealing import MasterKey
from counterpoint.local.cores import core_decomposition
from counterpoint.measures import ApproxDP, PureDP, zCDP
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.mechanism import Answer
from counterpoint.mechanisms.randomized_response import RandomizedResponse
from counterpoint.mechanisms.sparse_vector import SparseVector
from counterpoint.privacy.messages import Ask
from counterpoint.queries.aggregates import count, mean
from counterpoint.schema.columns import category, number
from counterpoint.service.identity import Role
from counterpoint.session.session import Session
from counterpoint.session.session import open as open_session
from counterpoint.sources.streams.stream import Stream
from counterpoint.sources.table import Table

if TYPE_CHECKING:
    import httpx

MADE_UP = """
    SELECT i AS person_id, (i * 7919) % 90 AS age,
        CASE WHEN i % 40 < 25 THEN 'CA' WHEN i % 40 < 39 THEN 'NY' ELSE 'WY' END AS state
    FROM range(10000) AS people(i)
"""
"""Ten thousand people who do not exist."""
VISITS = ["visitor,page,seconds", *(f"v{n % 1800},{'home' if n % 3 else 'shop'},{n % 50 * 12}" for n in range(3600))]
"""The lines of a file of 3,600 visits that did not happen."""


class Seeds:
    """The seeds of the story: from the operating system, or counted for a repeatable story."""

    def __init__(self, seed: int | None) -> None:
        self._seed = seed
        self._used = 0

    def __call__(self) -> bytes:
        """The next seed."""
        self._used += 1
        return os.urandom(32) if self._seed is None else digest(self._seed, self._used)


def tell(seed: int | None = None, console: Console | None = None) -> None:
    """Tell the story, with secure noise unless a seed is given; the service takes no seed."""
    console = console or Console()
    seeds = Seeds(seed)

    def say(text: str) -> None:
        console.print(text, highlight=False, soft_wrap=True)

    console.print(Panel("[bold]Counterpoint[/]: ask, interleave, and know what was lost", expand=False))
    session = _ask(console, say, seeds)
    _refuse(say, session)
    _explain(console, say, session)
    _count(say, seeds)
    _crash(say, seed)
    _peel(say, seeds)
    _prove(console, say)
    play(say)


def _ask(console: Console, say: Callable[[str], None], seeds: Seeds) -> Session:
    import duckdb  # noqa: PLC0415 - only the story needs to make up data

    say("\n[bold]1. A custodian has a table and sets a budget.[/] Each person is a unit of privacy;")
    say("   all analysis together must stay within ApproxDP(1, 1e-6).")
    people = Table(duckdb.connect().sql(MADE_UP), unit="person_id", rows_per_unit=1)
    session = Session(people, within=ApproxDP(1, 1e-6), ledger=MemoryLedger(seeds))
    say("   An analyst launches two mechanisms and pays for them now:")
    svt = session.launch(SparseVector(epsilon="0.3", threshold=1000, hits=3))
    say(f"   [green]launched[/] a sparse vector at {svt.mechanism.claim.loss!r}; lost so far: {session.loss!r}")
    noisy = session.launch(Laplace(epsilon="0.1", asks=4))
    say(f"   [green]launched[/] Laplace noise at {noisy.mechanism.claim.loss!r}; lost so far: {session.loss!r}")
    say("\n[bold]2. The analyst asks, going back and forth between them.[/] Asking costs nothing more.")
    grid = Grid("state", "more than 1,000 people? (sparse vector)", "how many? (Laplace)")
    for state in ("CA", "NY", "WY"):
        request = count(where=f"state = '{state}'")
        many = svt.ask(request)
        grid.add_row(state, "yes" if many else "no", str(noisy.ask(request)) if many else "not asked")
    console.print(grid)
    return session


def _refuse(say: Callable[[str], None], session: Session) -> None:
    say("[bold]3. A launch that does not fit is refused,[/] which costs nothing and harms nothing:")
    try:
        session.launch(Laplace("0.9"))
    except BudgetExceeded as refusal:
        say(f"   [red]BudgetExceeded[/]: {refusal}")
    again = session.handles[1].ask(count(where="age < 18"))
    say(f"   What was launched before keeps answering: {again} people are under 18, or about that.")


def _explain(console: Console, say: Callable[[str], None], session: Session) -> None:
    say("\n[bold]4. What was lost, and why is that so?[/] The certificate says:")
    console.print(Panel(str(session.certificate()), expand=False))
    epsilon = compose.optimal([PureDP("0.1")] * 100).epsilon_at(1e-6)
    say("   (That holds for losses chosen on the way. Were they fixed in advance, composition would be")
    say(f"   optimal: 100 x PureDP(0.1) is epsilon = {epsilon:.4f} at delta = 1e-6.)")


def _count(say: Callable[[str], None], seeds: Seeds) -> None:
    say("\n[bold]5. Data that keeps arriving:[/] a file of visits is replayed, and a dashboard shows three numbers,")
    say("   each of them paid for once. Of each visitor two visits count.")
    fields = {"page": category(["home", "shop"]), "seconds": number(0, 600)}
    visits = Stream(fields=fields, unit="visitor", per_unit=2)
    live = Session(visits, within=zCDP("0.5"), ledger=MemoryLedger(seeds))
    at_home = count(where="page = 'home'")
    home = live.launch(Counter(rho="0.2"), of=at_home)
    recent = live.launch(Counter(rho="0.2", window=1000), of=at_home)
    asked = live.launch(Gaussian(rho="0.05", asks=3))
    for arrived in (1200, 2400, 3600):
        visits.feed(islice(DictReader(VISITS), arrived), name="visits.csv")
        seconds = float(asked.ask(mean("seconds", where="page = 'home'")))
        say(f"   after {visits.pin()} visits: about {home.ask()} to the home page, {recent.ask()} of the last 1,000,")
        say(f"   {seconds:.0f} seconds each; {live.loss!r} lost, as before")


def _crash(say: Callable[[str], None], seed: int | None) -> None:
    say("\n[bold]6. And if the power fails?[/] With ledger='ledger.db', charges, states and answers are still there.")
    with TemporaryDirectory() as folder:
        MasterKey.create(_ledger_in(folder).key_file or "")
        child = f"from counterpoint.demo import die_asking; die_asking({folder!r}, {seed!r})"
        status = subprocess.run([sys.executable, "-c", child], check=False).returncode
        say(f"   Another process launches, asks 'q1' and is killed (status {status}): charged, and not answered yet.")
        visits = Stream(bound=1)
        with open_session(_ledger_in(folder), source=visits) as session:
            say(f"   Opened again: {visits.pin()} items, {session.loss!r} lost. 'q1' is answered, by coins on record:")
            first, *again = [session.handles[0].ask(id="q1") for _ in range(3)]
            say(f"   {first}, and however often it is asked again, {' and '.join(map(str, again))}.")
            session.launch(Counter(epsilon="0.5"), id="L")
            say(f"   Its launch, sent once more under its id, is not charged again: {session.loss!r} lost.")


def _ledger_in(folder: str) -> Durable:
    """A ledger with its key and witness in one folder, whatever the environment says, to be deleted together."""
    logging.getLogger("counterpoint.ledger").setLevel(logging.ERROR)  # which would be warned of
    place, key, witness = (os.path.join(folder, name) for name in ("ledger.db", "key", "witness"))
    return Durable(place, key, witness)


def die_asking(folder: str, seed: int | None) -> None:
    """Launch a counter, ask it, and end this process as a power cut would: between the charge and the answer."""
    asked = False

    def reached(point: str) -> None:
        if asked and point == "committed":
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))

    visits = Stream(bound=1)
    ledger = durable(_ledger_in(folder), "session", seeds=Seeds(seed), reached=reached)
    session = Session(visits, within=PureDP(1), ledger=ledger)
    counter = session.launch(Counter(epsilon="0.5"), id="L")
    visits.extend([1] * 1000)
    asked = True
    counter.ask(id="q1")


def _peel(say: Callable[[str], None], seeds: Seeds) -> None:
    say("\n[bold]7. Data that no custodian holds:[/] a hundred people each know their friends, and answer a server")
    say("   that is not trusted. Sixty of them all know each other; the others know one of these.")
    friends = [(a, b) for a in range(60) for b in range(a)] + [(60 + c, c) for c in range(40)]
    cores = core_decomposition(friends, "8", vertices=100, coins=SecureCoins(seeds()))
    inner, outer = (sorted(cores[v] for v in group)[len(group) // 2] for group in (range(60), range(60, 100)))
    say(f"   After {cores.rounds} rounds, for {cores.loss!r}: core numbers around {inner} inside and {outer} outside")
    say("   (the true ones are 59 and 1).")


def _prove(console: Console, say: Callable[[str], None]) -> None:
    say("\n[bold]8. And is it true?[/] The same code runs on coins that try every outcome:")
    mechanism = RandomizedResponse(1, "0.01")
    laws = [dict(EnumeratedCoins().law(_response, mechanism, bit)) for bit in (0, 1)]
    grid = Grid("answer (exposed, bit)", "if the bit is 0", "if the bit is 1")
    for answer in sorted(laws[0].keys() | laws[1].keys()):
        grid.add_row(str(answer), *(f"{float(law.get(answer, Fraction(0))):.6f}" for law in laws))
    console.print(grid)
    e = Fraction("2.71828182845904523536028748")
    delta = sum(max(p - e * laws[1].get(answer, Fraction(0)), Fraction(0)) for answer, p in laws[0].items())
    say(f"   Exact delta at epsilon = 1: {float(delta):.6f}; claimed: {mechanism.claim.loss!r}.")


def _response(mechanism: RandomizedResponse, bit: int, coins: Coins) -> Answer:
    return mechanism.step(mechanism.start(coins), Ask(private=bit), coins)[1]


EXTRA = ("litestar", "uvicorn", "httpx", "jinja2")
"""The packages of the extra `service`."""
CONFIGURATION = """
ledger = "ledger.db"
key_file = "key"
witness = "witness"
[tables.people]
source = '{people}'
unit = "person_id"
rows_per_unit = 1
columns.age = {{ type = "number", low = 0, high = 100 }}
budget = {{ measure = "PureDP", epsilon = 1 }}
"""
CHECKER = Path(cp.__file__).with_name("checker.py")

Say = Callable[[str], None]


class RunningService(NamedTuple):
    """The address of a service, its custodian's key, and its public signing key."""

    url: str
    key: str
    signer: str

    def calls(self, key: str) -> "httpx.Client":
        """An HTTP client that sends this key."""
        import httpx  # noqa: PLC0415 - of the extra

        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {key}"}, timeout=60)

    def new_key(self, name: str, role: Role) -> str:
        """Add a principal, as the custodian, and make their key."""
        with self.calls(self.key) as custodian:
            custodian.post("/v1/principals", json={"name": name, "role": role.value}).raise_for_status()
            made = custodian.post(f"/v1/principals/{name}/keys", json={"days": 1}).raise_for_status()
        return str(made.json()["key"])


def play(say: Say) -> None:
    """Serve, grant, ask, refuse, revoke, and check a receipt; without the extra, say how to get it."""
    say("\n[bold]9. Several people, one budget, over HTTP:[/] `counterpoint serve` runs in a process of its own.")
    if any(find_spec(name) is None for name in EXTRA):
        say("   The service is an extra. To see this scene: pip install 'counterpoint\\[service]', or make demo.")
        return
    with TemporaryDirectory() as folder, _served(Path(folder)) as service:
        receipt = _share(say, service)
        _check(say, Path(folder), service, receipt)


@contextmanager
def _served(folder: Path) -> Iterator[RunningService]:
    """A service over a ledger in this folder, until it is stopped."""
    MasterKey.create(folder / "key")
    configuration = folder / "people.toml"
    configuration.write_text(CONFIGURATION.format(people=cp.datasets.people()), encoding="utf-8")
    command = [sys.executable, "-u", "-m", "counterpoint", "serve", "--config", str(configuration), "--port", "0"]
    command += ["--log-level", "error"]  # it would warn of the witness, which goes away with this ledger's folder
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield _announced(process.stdout)
        finally:
            process.terminate()


def _announced(lines: Iterator[str]) -> RunningService:
    """Read what a service prints at its start: its address, its first custodian's key, and its signing key."""
    address = re.search(r"http://\S+", next(lines, ""))
    key = re.search(r"cp_\S+", next(lines, ""))
    signer = re.search(r"[0-9a-f]{64}", next(lines, ""))
    if address is None or key is None or signer is None:
        raise InvalidParameter("the service of the demo did not start; try `counterpoint serve --demo`")
    return RunningService(address[0], key[0], signer[0])


def _share(say: Say, service: RunningService) -> dict[str, object]:
    """Two analysts work in one budget: one is answered, one is refused and revoked. The receipt of the answer."""
    keys = {name: service.new_key(name, Role.ANALYST) for name in ("ann", "bob")}
    carol, ann, bob = (cp.connect(service.url, key=key) for key in (service.key, keys["ann"], keys["bob"]))
    with carol, ann, bob:
        whole = carol.session("people")
        whole.grant("ann", cp.PureDP("0.6"))
        bobs = whole.grant("bob", cp.PureDP("0.4"))
        say(f"   A custodian grants PureDP(0.6) to ann and PureDP(0.4) to bob: {whole.loss!r} of PureDP(1) is charged.")
        people = ann.session("people").ask(cp.count(where="age >= 65"), epsilon="0.1", id="monday")
        say(f"   ann asks how many people are 65 or older, for {people.cost!r}: {people!r}.")
        try:
            bob.session("people").ask(cp.count(), epsilon="0.5")
        except BudgetExceeded as refusal:
            say(f"   bob asks, for PureDP(0.5). [red]BudgetExceeded[/]: {refusal}")
        whole.revoke(bobs)
        try:
            bob.session("people").ask(cp.count(), epsilon="0.1")
        except NotAllowed as refusal:
            say(f"   The custodian revokes bob's grant, and bob asks again. [red]NotAllowed[/]: {refusal}")
        signed, disclosed = ann.session("people").receipt("monday")
    return {**signed._asdict(), "disclosed": disclosed._asdict()}


def _check(say: Say, folder: Path, service: RunningService, receipt: dict[str, object]) -> None:
    """An auditor checks the record and the receipt, by a file that imports nothing of ours."""
    say("   ann has a signed receipt. An auditor fetches the public record, which has no answers, and checks both with")
    say("   checker.py, a single file that imports nothing of Counterpoint:")
    with service.calls(service.new_key("olga", Role.AUDITOR)) as olga:
        record = olga.get("/v1/data-sets/people/record").raise_for_status().text
    (folder / "record.jsonl").write_text(record, encoding="utf-8")
    (folder / "receipt.json").write_text(json.dumps(receipt), encoding="utf-8")
    command = [sys.executable, str(CHECKER), "--signer", service.signer, "record.jsonl", "receipt.json"]
    checked = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    say(f"   [green]{checked.stdout.strip()}[/]")
