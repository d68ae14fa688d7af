"""Numbers that pages state are computed: each is worked out again here, and the page must have it as it comes out.

docs/tightness.md is written by `docs/make_tightness.py`; what it says of our rules is recomputed from its own tables'
workloads, and theory.md takes its shares from it.
"""

import json
import math
import re
from fractions import Fraction
from itertools import pairwise, takewhile
from pathlib import Path

import mpmath
import pytest
from bench.mixing import workloads

from counterpoint.composition.best import SHARES
from counterpoint.composition.filters import Filter
from counterpoint.composition.fixed import compose
from counterpoint.composition.odometers import Odometer
from counterpoint.composition.planned import exchange
from counterpoint.composition.reserve import UNIT, left_after
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, RenyiDP, SampledGaussianDP, zCDP
from counterpoint.numbers import format_number
from counterpoint.privacy.claims import claim
from counterpoint.privacy.relations import every_step

DOCS = Path(__file__).parent.parent.parent / "docs"
TIGHTNESS = (DOCS / "tightness.md").read_text()
VECTORS = json.loads((DOCS.parent / "tests" / "vectors" / "residues.json").read_text())
PAGES = {name: " ".join((DOCS / name).read_text().split()) for name in ("theory.md", "guide/rules.md")}


def rows_of(header):
    """The cells of the table that begins with this."""
    lines = TIGHTNESS[TIGHTNESS.index(header) :].splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line]
    return list(takewhile(lambda row: len(row) > 2, table[2:]))


def above(rule):
    """By how many percent a rule of the table is above the optimum, from least to most."""
    rows = {row[0]: row[1:] for row in rows_of("| rule |")}
    optimum = [float(cell.split()[0]) for cell in rows["optimal (fixed losses)"]]
    found = [(cell, best) for cell, best in zip(rows[rule], optimum, strict=True) if cell != "not covered"]
    return sorted(100 * (float(cell.split()[0]) / best - 1) for cell, best in found)


def least_and_most(rule):
    found = above(rule)
    return f"{found[0]:.1f} to {found[-1]:.1f}"


def planned(epsilon, delta, each):
    rule = Filter.planned(ApproxDP(epsilon, delta), PureDP(each))
    return rule.would_admit(rule.start(), PureDP(each))


def paid_from(mu, each):
    left, count = int(mu**2 * UNIT), 0
    while (left := left_after(left, each)) is not None:
        count += 1
    return count


def read(rule, *epsilons):
    account = rule.start()
    for epsilon in epsilons:
        account = rule.admit(account, claim(PureDP(epsilon), every_step(), "a test"))
    return float(rule.loss(account).mu)


def steps(rule):
    return rule.would_admit(rule.start(), SampledGaussianDP(1, "0.01"))


def fixed_steps():
    """As `tests/test_vectors.py` tests it."""
    return VECTORS["fixed_lists_of_sampled_gaussians"][0]["steps_fixed_list"]


def renyi_of_sampled(q, rho, order):
    """The divergence of the sampled Gaussian of this zCDP, by quadrature."""
    mu = mpmath.sqrt(2 * rho)
    peaks = sorted({mpmath.mpf(0), order * mu, (order - 1) * mu, mu})
    points = [-20, *peaks, peaks[-1] + 20]
    moment = mpmath.quad(
        lambda x: mpmath.npdf(x) * (1 - q + q * mpmath.exp(mu * x - mu**2 / 2)) ** order, [float(p) for p in points]
    )
    return mpmath.log(moment) / (order - 1)


def said_of_exchanges():
    costs = [exchange(46, Fraction(1, 10), Fraction(size)) for size in ("0.2", "0.5", "0.8")]
    assert costs[2] is None
    return f"a launch of 0.2 costs {costs[0]}, one of 0.5 costs {costs[1]}, and 0.8 does not fit"


MU = GaussianDP.for_budget(3, "1e-6").mu
STATED = {
    "the Renyi filter and the advanced one": lambda: (
        f"it is {least_and_most('filter, by=renyi')} % above the optimal $\\varepsilon$ for fixed parameters, the "
        f"advanced one {least_and_most('filter, by=advanced (Whitehouse et al. 2023, Thm 1)')} %"
    ),
    "what fits into a Gaussian": lambda: (
        f"PureDP(0.1) fits {paid_from(MU, Fraction(1, 10))} times into the mu of (3, 1e-6), of which its own mu "
        f"squared pays {int(MU**2 / Fraction(PureDP('0.1').as_gaussian().mu) ** 2)}"
    ),
    "what is planned": lambda: (
        f"{planned(3, '1e-6', '0.1')} of PureDP(0.1) at (3, 1e-6), {planned(1, '1e-6', '0.03')} of 0.03 at (1, 1e-6), "
        f"{planned(2, '1e-4', '0.1')} of 0.1 at (2, 1e-4), {planned(8, '1e-6', '0.5')} of 0.5 at (8, 1e-6)"
    ),
    "exchanges": said_of_exchanges,
    "a Gaussian odometer": lambda: (
        f"forty launches of 0.1 read {read(Odometer.gaussian(), *['0.1'] * 40):.3f} and have "
        f"{read(Odometer(GaussianDP), *['0.1'] * 40):.3f} as the root of their squares"
    ),
    "its order": lambda: (
        f"0.1 before 0.3 reads {read(Odometer.gaussian(), '0.1', '0.3'):.5f}, and 0.3 before 0.1 reads "
        f"{read(Odometer.gaussian(), '0.3', '0.1'):.5f}"
    ),
    "sampled steps": lambda: (
        f"admits {steps(Filter(ApproxDP(5, '1e-5'), by='renyi', alpha=5, slack='0.97e-5')):,}, and a list that is "
        f"fixed in advance has {fixed_steps():,}"
    ),
    "sampled steps under the default filter": lambda: (
        f"Filter(ApproxDP(5, 1e-5)) admits {steps(Filter(ApproxDP(5, '1e-5'))):,} steps"
    ),
    "slack": lambda: (
        f"The default takes ${float(SHARES.without_delta.slack):g}\\, \\delta$ for tails, or "
        f"${float(SHARES.with_delta.slack):g}\\, \\delta$ if the first launch has a $\\delta$"
    ),
    "orders": lambda: (
        f"The Renyi orders lie {float(min(SHARES.steps)):g} to {float(max(SHARES.steps)):.0f} times as far from 1"
    ),
    "two launches on one sample": lambda: (
        f"$1 + q$ $(e^{{2\\, \\varepsilon}} - 1) = {1 + (10**2 - 1) / 10:g}$, where the two claims promise "
        f"$1.9^{{2}} = {(1 + 9 / 10) ** 2:.2f}$"
    ),
    "samples for each ask": lambda: f"$1 + (1 - 0.9^{{5}})(e^{{\\varepsilon}} - 1) = {1 + (1 - 0.9**5) * 9:.2f}$",
    "sampled Gaussians at large orders": lambda: (
        "at $\\rho = 1/2$ and order 32 the divergence of the sampled Gaussian is "
        f"{float(renyi_of_sampled(0.1, 0.5, 32)):.1f}, and {32 * 0.5 / 100:.2f} would be claimed"
    ),
}


@pytest.mark.parametrize("what", STATED)
def test_theory_states_what_comes_out(what):
    assert STATED[what]() in PAGES["theory.md"]


def test_the_guide_states_what_comes_out():
    both = [f"{read(rule, *['0.1'] * 40):.3f}" for rule in (Odometer.gaussian(), Odometer(GaussianDP))]
    assert (
        f"Forty launches of 0.1 read {both[0]}, where the squares of `Odometer(GaussianDP)` add up to {both[1]}"
        in (PAGES["guide/rules.md"])
    )


def as_shown(workload):
    found = workload.value(Filter(workload.budget).start())
    return f"{found:.0f}" if workload.largest is None else f"{found:.3g}"


def launched(workload):
    return f"({format_number(workload.budget.epsilon)}, {format_number(workload.budget.delta)})", as_shown(workload)


ALL = list(enumerate(workloads()))


@pytest.mark.parametrize(
    "number, workload",
    [pytest.param(*row, marks=[] if row[0] % 9 == 2 else [pytest.mark.long], id=str(row[0])) for row in ALL],
)
def test_tightness_has_what_the_default_filter_admits_now(number, workload):
    row = rows_of("| under |")[number]
    assert (row[0], row[2]) == launched(workload)


def test_the_shares_of_tightness_follow_from_its_table():
    shown = dict(re.findall(r"(our default filter|dp_accounting RDP|OpenDP filter) (\d+) %", TIGHTNESS))
    for column, name in ((2, "our default filter"), (4, "dp_accounting RDP"), (5, "OpenDP filter")):
        pairs = [(row[column], row[3]) for row in rows_of("| under |") if "not covered" not in (row[column], row[3])]
        shares = [math.log(float(one) / float(best)) for one, best in pairs if float(one) and float(best)]
        assert abs(100 * math.exp(math.fsum(shares) / len(shares)) - float(shown[name])) < 0.7


@pytest.mark.parametrize("losses, column", [([ApproxDP("0.1", "1e-9")] * 100, 1), ([PureDP("0.01")] * 1000, 2)])
def test_the_first_table_has_the_optimum_and_the_budgets_that_filters_need(losses, column):
    rows = {row[0]: float(row[column].split()[0]) for row in rows_of("| rule |") if row[column][0].isdigit()}
    assert rows["optimal (fixed losses)"] == round(compose.optimal(losses).epsilon_at("1e-6"), 4)
    for name, options in (("**default filter**", {}), ("filter, by=renyi", {"by": "renyi"})):
        for share, fits in ((Fraction(1001, 1000), True), (Fraction(998, 1000), False)):
            rule = Filter(ApproxDP(Fraction(str(rows[name])) * share, "1e-6"), **options)
            account = rule.start()
            assert all((account := account.plus(loss)).keeps(rule.budget) for loss in losses) == fits, name


def test_the_tables_are_read():
    assert len(rows_of("| under |")) == len(ALL) and len(rows_of("| rule |")) > 10
    assert all(one <= other for one, other in pairwise(above("filter, by=renyi")))
    assert {type(loss) for _, each in ALL for loss in each.launches} >= {PureDP, ApproxDP, zCDP, GaussianDP, RenyiDP}
