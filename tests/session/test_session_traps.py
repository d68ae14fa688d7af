"""What a naive session gets wrong, one test for each trap, on equal coins where it counts."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.session.deeds import done, lines
from tests.session.numbers_source import Numbers

import counterpoint as cp
from counterpoint.encoding import digest, encode
from counterpoint.errors import BudgetExceeded, Halted, InvalidRequest, NotAllowed
from counterpoint.ledger.memory import MemoryLedger
from counterpoint.privacy.relations import Sparse, Static

DATA = {"apples": 100, "avocados": 7, "beans": 3}


class ByBody(MemoryLedger):
    """Seeds that depend on what a child is asked and how often it was, and not on what happens to others."""

    def __init__(self):
        self._times, self._asked = {}, b""
        super().__init__(seeds=lambda: digest(self._asked.decode(), self._times[self._asked]))

    def begin(self, request, wanted, **more):
        self._asked = wanted.body()
        self._times[self._asked] = self._times.get(self._asked, 0) + 1
        return super().begin(request, wanted, **more)


def session(within=None, **options):
    return cp.Session(Numbers(DATA), within or cp.PureDP(1), ledger=ByBody(), **options)


def test_t03_a_refused_launch_leaves_indices_coins_and_account_as_if_it_had_never_been_sent():
    def run(with_refusal):
        s = cp.Session(Numbers(DATA), cp.RenyiDP(alpha=8, epsilon=1), ledger=ByBody())
        first = s.launch(cp.Gaussian("0.075"))  # 8 * 0.075 = 0.6
        if with_refusal:
            with pytest.raises(BudgetExceeded):
                s.launch(cp.Gaussian("0.0750"))
        second = s.launch(cp.Gaussian("0.05"))
        return s.loss, first._path, second._path, [h.ask("apples") for h in (first, second)], done(s)

    assert run(True) == run(False)
    assert run(True)[:3] == (cp.RenyiDP(alpha=8, epsilon=1), (0,), (1,))


def test_t04_children_outlive_the_budget():
    s = session()
    svt = s.launch(cp.SparseVector(epsilon=1, threshold=10**6, hits=1))
    with pytest.raises(BudgetExceeded):
        s.launch(cp.Laplace("0.001"))
    assert [svt.ask("apples") for _ in range(50)] == [False] * 50, "a million is too far away for this noise"
    assert s.loss == cp.PureDP(1) and s.remaining.epsilon == 0


def test_t05_reading_the_loss_changes_no_transcript():
    def run(reads):
        s = cp.Session(Numbers(DATA), rule=cp.Odometer(cp.PureDP), ledger=ByBody())
        said = []
        first = s.launch(cp.Laplace("0.4", asks=2))
        said.append({s.loss for _ in range(reads + 1)})
        said.append(first.ask("apples"))
        s.would_cost(cp.Laplace("0.1")) if reads else None
        said.append({s.loss for _ in range(reads + 1)})
        second = s.launch(cp.Laplace("0.2"))
        said += [first.ask("beans"), second.ask("beans"), s.loss]
        return said, lines(s), encode(s._engine.ledger.read((0,)), sealed=True)

    assert run(1000) == run(0)


def test_t05_a_message_that_spells_like_a_reading_is_an_ordinary_ask():
    s = cp.Session(Numbers({"privacy_loss": 7, "loss": 8}), cp.PureDP(10**6))
    exact = s.launch(cp.Laplace(10**5, asks=2))
    assert (exact.ask("privacy_loss"), exact.ask("loss")) == (7, 8)


def test_t18_which_parts_of_a_table_are_affected_is_settled_before_and_of_a_stream_it_is_not():
    """So a table's parts compose in every measure, and a stream's only as Henzinger et al. 2024, Thm 5.4 says."""
    static, changing = session(), cp.Session(cp.Stream(fields={"page": cp.text()}), cp.ApproxDP(1, 1e-6))
    static.partition("letter", within=cp.PureDP("0.1"))
    changing.partition("page", k=2, within=cp.PureDP("0.1"))
    fixed, chosen = (s._engine.node((0,))[0].relation for s in (static, changing))
    assert isinstance(fixed, Static) and isinstance(chosen, Sparse)
    assert (fixed.decided, chosen.decided) == (True, False)
    identical = cp.mechanisms.Ask(cp.mechanisms.ToChild("a"), 3), cp.mechanisms.Ask(cp.mechanisms.ToChild("a"), 3)
    later = cp.mechanisms.Ask(cp.mechanisms.ToChild("a"), 3), cp.mechanisms.Ask(cp.mechanisms.ToChild("a"), 4)
    assert fixed.valid([identical, later]) and chosen.valid([identical, later]), "a part may answer an equal ask first"
    others = [
        (cp.mechanisms.Ask(cp.mechanisms.ToChild(child), 3), cp.mechanisms.Ask(cp.mechanisms.ToChild(child), 4))
        for child in "bc"
    ]
    assert [relation.valid([identical, *others]) for relation in (fixed, chosen)] == [False, True], "k is 1 and 2"
    with pytest.raises(cp.errors.NotCovered, match="reaching"):
        fixed.begin()


SCRIPTS = [["apples", "beans", "apples"], ["beans"] * 3, ["avocados", "apples", "avocados"]]


def children(s):
    near = cp.SparseVector(epsilon="0.2", threshold=50, hits=1)
    far = cp.SparseVector(epsilon="0.2", threshold=8, hits=2)
    return [s.launch(near), s.launch(far), s.launch(cp.Laplace("0.3", asks=2))]


def transcript(order):
    """What each child says to its own script, in this interleaving of the children."""
    s = session()
    handles, said = children(s), [[], [], []]
    left = [list(script) for script in SCRIPTS]
    for who in order:
        if not left[who]:
            continue
        try:
            said[who].append(handles[who].ask(left[who].pop(0)))
        except Halted:
            said[who].append("halted")
    return said


SEQUENTIAL = [0] * 3 + [1] * 3 + [2] * 3


@settings(max_examples=50)
@given(st.permutations(SEQUENTIAL))
def test_t21_a_childs_transcript_does_not_depend_on_the_interleaving(order):
    assert transcript(order) == transcript(SEQUENTIAL)


def test_t21_a_childs_halt_is_its_own_last_message():
    said = transcript(SEQUENTIAL)
    assert said[2][-1] == "halted" and len(said[2]) == 3, "the Laplace child had two asks"
    assert all(len(child) == 3 for child in said)


def test_t21_garbage_touches_no_child_and_no_coins():
    def run(garbage):
        s = session()
        handles, said = children(s), []
        for who in (0, 2, 1, 2):
            for bad in garbage:
                with pytest.raises((InvalidRequest, cp.errors.InvalidParameter)):
                    handles[who].ask(*bad[0], **bad[1])
            said.append(handles[who].ask("apples"))
        return said, lines(s)

    bad = [(("bad request",), {}), ((7,), {}), ((), {}), (("apples",), {"nonsense": 1}), (("apples",), {"id": 3})]
    assert run(bad) == run([])


def test_t21_under_the_sequential_session_interleaving_is_refused():
    s = session(sequential=True)
    first = s.launch(cp.Laplace("0.2", asks=3))
    first.ask("apples")
    second = s.launch(cp.Laplace("0.2", asks=3), id="second")
    with pytest.raises(Halted, match="sequential"):
        first.ask("apples")
    with pytest.raises(BudgetExceeded):
        s.launch(cp.Laplace(1))
    assert isinstance(second.ask("beans"), int), "a refused launch retires nobody"
    assert s.launch(cp.Laplace("0.2", asks=3), id="second").path == second.path
    assert isinstance(second.ask("beans"), int), "nor does a launch that has been made before"
    for deed in (lambda: s.delegate(cp.PureDP("0.1")), lambda: s.partition("letter", within=cp.PureDP("0.1"))):
        with pytest.raises(NotAllowed, match="sequential"):
            deed()
    assert s.loss == cp.PureDP("0.4")


CANARY = 987_654_321


def test_history_displays_and_errors_hold_public_facts_only():
    """A marked value, everything done to it, and a search of everything that can be seen but the answers."""
    from rich.console import Console

    stream = cp.Stream(fields={"page": cp.text(), "clicks": cp.number(0, 10**9)}, unit="user", per_unit=2)
    stream.extend([{"user": CANARY, "page": f"secret {CANARY}", "clicks": CANARY}] * 3)
    s = cp.Session(stream, within=cp.PureDP(1))
    parts = s.partition("page", k=4, within=cp.PureDP("0.05"))
    handle, inner = s.launch(cp.Laplace("0.1")), parts["home"].launch(cp.Laplace("0.05"))
    colleague = s.delegate(cp.PureDP("0.1"))
    handle.ask(cp.total("clicks")), inner.ask(cp.total("clicks"))
    seen = [s, handle, inner, parts, colleague, stream, stream.describe(), s.history, s.certificate(), s._repr_html_()]
    for deed in (
        lambda: handle.ask(cp.total("clicks")),
        lambda: s.launch(cp.Laplace(9)),
        lambda: s.launch(cp.Counter(1), of="clicks"),
        lambda: parts[3],
        lambda: stream.append({"user": "x", "other": 1}),
    ):
        with pytest.raises(cp.CounterpointError) as caught:
            deed()
        seen.append(caught.value)
    console = Console(record=True, width=200)
    console.print(s)
    text = console.export_text() + "".join(map(str, seen)) + "".join(map(repr, seen))
    assert str(CANARY) not in text and "secret" not in text
    assert "budget" in text and "Laplace" in text


def test_a_display_shows_budget_live_mechanisms_what_would_fit_and_what_is_reserved():
    s = cp.Session(Numbers(DATA), cp.zCDP(1))
    live, done = s.launch(cp.Gaussian("0.25", asks=2)), s.launch(cp.Gaussian("0.25"))
    done.ask("apples"), live.ask("apples")
    s.delegate(cp.zCDP("0.125")).launch(cp.Gaussian("0.1"))
    s.partition("letter", within=cp.zCDP("0.125"))
    shown = s._repr_html_()
    for words in (
        "zCDP(1)",
        "zCDP(0.75)",
        "[0] live",
        "[1] halted",
        "Gaussian(rho=0.25)",
        "Laplace(epsilon=",
        "zCDP(0.125), of which zCDP(0.1) is used; the rest stays reserved",
        "parts by &#x27;letter&#x27;",
    ):
        assert words in shown, words
    s.launch(cp.Gaussian("0.25"))
    assert "nothing more; what was launched keeps answering" in s._repr_html_()
    assert s.would_cost(cp.Gaussian("0.0001")).fits is False


def test_a_display_of_a_gaussian_budget_says_what_would_fit_in_its_own_measure():
    assert "GaussianDP(0.5)</td>" in cp.Session(Numbers(DATA), cp.GaussianDP("0.5"))._repr_html_()
    assert "nothing more" in cp.Session(Numbers(DATA), cp.GaussianDP(0))._repr_html_()


def test_a_display_takes_nobodys_key_for_markup():
    from rich.console import Console

    s = cp.Session(cp.Stream(fields={"[bold]x[/bold]": cp.text()}), cp.PureDP(1))
    s.partition("[bold]x[/bold]", k=2, within=cp.PureDP("0.1"))
    console = Console(record=True, width=200)
    console.print(s)
    assert "[bold]x[/bold]" in console.export_text()


def test_coroutines_interleave_handles_through_threads():
    s = session()
    one, two = s.launch(cp.Laplace("0.5", asks=20)), s.launch(cp.Laplace("0.5", asks=20))

    async def analyst(handle):
        return [await asyncio.to_thread(handle.ask, "apples") for _ in range(20)]

    async def both():
        return await asyncio.gather(analyst(one), analyst(two))

    assert [len(answers) for answers in asyncio.run(both())] == [20, 20] and one.halted and two.halted
