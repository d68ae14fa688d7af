"""The story that `counterpoint demo` tells: a budget, interleaved mechanisms, a refusal, a certificate, a proof.

It runs on made-up data in memory and grows with the library.

>>> from rich.console import Console
>>> import io
>>> tell(seed=1, console=Console(file=io.StringIO()))
"""

from fractions import Fraction

from rich.console import Console
from rich.panel import Panel
from rich.table import Table

from counterpoint.composition import compose
from counterpoint.composition.filters import Filter
from counterpoint.mechanisms.additive import Gaussian, Laplace
from counterpoint.mechanisms.concurrent import Concurrent, Launch, Refused
from counterpoint.mechanisms.mechanism import Answer, Mechanism, State
from counterpoint.mechanisms.randomized_response import RandomizedResponse
from counterpoint.privacy.losses import ApproxDP, PureDP
from counterpoint.privacy.messages import Ask, To
from counterpoint.privacy.relations import every_step
from counterpoint.randomness.coins import Coins
from counterpoint.randomness.enumerated import EnumeratedCoins
from counterpoint.randomness.secure import SecureCoins
from counterpoint.randomness.seeded import SeededCoins

PATIENTS = {"Aspen": 1204, "Birch": 87, "Cedar": 2511}
"""Made-up: how many patients each clinic has. A neighbour of this data has one patient more or less."""


class Story:
    """One telling: where it is shown, and the composition that it talks to."""

    def __init__(self, console: Console, coins: Coins) -> None:
        self.console = console
        self.coins = coins
        self.composition = Concurrent(Filter(ApproxDP(1, 1e-6)), every_step())
        self.state: State = self.composition.start(coins)

    def say(self, text: str) -> None:
        """A line of the story."""
        self.console.print(text, highlight=False, soft_wrap=True)

    def send(self, message: Ask) -> Answer:
        """One message to the composition."""
        state, answer = self.composition.step(self.state, message, self.coins)
        assert state is not None  # this rule never halts
        self.state = state
        return answer

    def launch(self, mechanism: Mechanism) -> int:
        """Launch a mechanism and show what it cost."""
        child = self.send(Ask(Launch(mechanism)))
        assert isinstance(child, int)
        lost = self.composition.loss(self.state)
        name, cost = type(mechanism).__name__, mechanism.claim.loss
        self.say(f"   [green]launched[/] {name} at {cost!r}, {lost!r} so far")
        return child


def tell(seed: int | None = None, console: Console | None = None) -> None:
    """Tell the story, with secure noise unless a seed is given."""
    console = console or Console()
    story = Story(console, SecureCoins() if seed is None else SeededCoins(seed))
    console.print(Panel("[bold]Counterpoint[/]: ask, interleave, and know what was lost", expand=False))
    _ask(story)
    _refuse(story)
    _explain(story)
    _prove(story)


def _ask(story: Story) -> None:
    story.say("\n[bold]1. A custodian sets a budget.[/] Three clinics, how many patients is secret.")
    story.say("   All analysis together must stay within ApproxDP(1, 1e-6).")
    story.say("   An analyst launches two mechanisms and pays for them now:")
    counts = story.launch(Laplace("0.4", asks=4))
    totals = story.launch(Gaussian("0.005", asks=2))
    story.say("\n[bold]2. She asks, going back and forth between them.[/] Asking costs nothing more.")
    table = Table("to", "question", "noisy answer")
    for clinic, patients in PATIENTS.items():
        answer = story.send(Ask(To(counts), private=patients))
        table.add_row("Laplace", f"patients at {clinic}", str(answer))
        if clinic == "Birch":
            total = story.send(Ask(To(totals), private=sum(PATIENTS.values())))
            table.add_row("Gaussian", "patients at all three", str(total))
    story.console.print(table)


def _refuse(story: Story) -> None:
    story.say("[bold]3. A launch that does not fit is refused,[/] which costs nothing and harms nothing:")
    refused = story.send(Ask(Launch(Laplace("0.9"))))
    assert isinstance(refused, Refused)
    story.say(f"  [red]{refused.error}[/]: {refused.reason}")
    child = story.send(Ask(To(0), private=PATIENTS["Aspen"]))
    story.say(f"   The mechanisms launched before go on answering: Aspen again, {child}.")


def _explain(story: Story) -> None:
    story.say("\n[bold]4. What was promised, and why?[/] The certificate says:")
    story.console.print(Panel(str(story.composition.claim.certificate), expand=False))
    fixed = compose.optimal([PureDP("0.1")] * 100)
    epsilon = fixed.epsilon_at(1e-6)
    story.say("   (That is for losses chosen as she goes. Were they fixed in advance, composition would be")
    story.say(f"   optimal: 100 x PureDP(0.1) is epsilon = {epsilon:.4f} at delta = 1e-6.)")


def _prove(story: Story) -> None:
    story.say("\n[bold]5. And is it true?[/] The same code runs on coins that try every outcome:")
    mechanism = RandomizedResponse(1, "0.01")
    laws = [dict(EnumeratedCoins().law(_response, mechanism, bit)) for bit in (0, 1)]
    table = Table("answer (exposed, bit)", "if the bit is 0", "if the bit is 1")
    for answer in sorted(laws[0].keys() | laws[1].keys()):
        table.add_row(str(answer), *(f"{float(law.get(answer, Fraction(0))):.6f}" for law in laws))
    story.console.print(table)
    e = Fraction("2.71828182845904523536028748")
    delta = sum(max(p - e * laws[1].get(answer, Fraction(0)), Fraction(0)) for answer, p in laws[0].items())
    story.say(f"   Exact delta at epsilon = 1: {float(delta):.6f}; claimed: {mechanism.claim.loss!r}.")


def _response(mechanism: RandomizedResponse, bit: int, coins: Coins) -> Answer:
    return mechanism.step(mechanism.start(coins), Ask(private=bit), coins)[1]
