"""The last scene of `counterpoint demo`: a service in a process of its own, two analysts, refusals, a checked receipt.

It runs what an operator runs, `counterpoint serve`, on made-up people and a ledger in a directory that goes away with
it. The noise is the service's own: a service takes no seed.

>>> printed = ["serving people at http://127.0.0.1:8000", "the key of 'custodian': cp_...", f"signing with {'ab' * 32}"]
>>> _announced(iter(printed)).url
'http://127.0.0.1:8000'
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import counterpoint as cp
from counterpoint.errors import BudgetExceeded, InvalidParameter, NotAllowed
from counterpoint.ledger.crypto.sealing import MasterKey
from counterpoint.service.identity import Role

if TYPE_CHECKING:
    import httpx

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
    """Where a service listens, its custodian's key, and the public key that it signs with."""

    url: str
    key: str
    signer: str

    def calls(self, key: str) -> "httpx.Client":
        """What sends requests with a key."""
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
    """What a service prints when it starts: its address, the key of its first custodian, the one that it signs with."""
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
