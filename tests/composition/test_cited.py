"""A certificate cites the theorem that covers its measure and its data, not one about other losses."""

import pytest

from counterpoint.composition.filters import Filter
from counterpoint.composition.parallel import Parallel
from counterpoint.composition.slots import Slots
from counterpoint.measures import ApproxDP, GaussianDP, PureDP, RenyiDP, TradeOff, tCDP, zCDP
from counterpoint.measures.conversions import response_of
from counterpoint.mechanisms.composite_parts import Part
from counterpoint.mechanisms.concurrent import Concurrent
from counterpoint.privacy.relations import every_step, static_parts

PURE_OR_APPROXIMATE = [
    "Vadhan and Wang 2021, Cor 4",
    "Lyu 2022, Thm 1;",
    "Henzinger et al. 2024, Thm 4.12",
    "Haney et al. 2023, Thm 1.19",
    "Henzinger et al. 2024, Thm 12.4",
]
CURVE = TradeOff([(0, 1), ("1/4", "1/4"), (1, 0)])


def certificate(rule, relation=None):
    return Concurrent(rule, relation or every_step()).claim.certificate


@pytest.mark.parametrize(
    ("loss", "theorem"),
    [
        (PureDP(1), "Henzinger et al. 2024, Thm 4.12"),
        (ApproxDP(1, "1e-6"), "Henzinger et al. 2024, Thm 4.12"),
        (zCDP(1), "Henzinger et al. 2024, Cor 13.4"),
        (RenyiDP(2, 1), "Henzinger et al. 2024, Cor 13.4"),
        (tCDP(1, 8), "Henzinger et al. 2024, Cor 13.4"),
        (GaussianDP(1), "Henzinger et al. 2024, Cor 14.7"),
        (CURVE, "Henzinger et al. 2024, Cor 14.7"),
    ],
    ids=repr,
)
def test_slots_cite_the_theorem_of_their_measure(loss, theorem):
    rule = Slots([loss] * 2)
    assert certificate(rule).rests_on(theorem) and rule.certificate(rule.start()).rests_on(theorem)
    others = {*PURE_OR_APPROXIMATE} if response_of(loss) is None else {"Cor 13.4", "Cor 14.7"}
    assert not any(certificate(rule).rests_on(other) for other in others)


@pytest.mark.parametrize("budget", [zCDP(1), RenyiDP(2, 1), GaussianDP(1), CURVE], ids=repr)
def test_filters_in_other_measures_cite_no_theorem_on_epsilon_and_delta(budget):
    assert not any(certificate(Filter(budget)).rests_on(theorem) for theorem in PURE_OR_APPROXIMATE)


@pytest.mark.parametrize("each", [PureDP(1), zCDP(1), GaussianDP(1)], ids=repr)
def test_parts_of_static_data_cite_the_corollaries_on_static_data(each):
    found = certificate(Parallel(2, each=each, first_pair=True), static_parts(2, every_step()))
    assert found.rests_on("Henzinger et al. 2024, Cor 5.15, 13.7, 14.9")


def test_the_slots_of_a_composite_part_cite_the_theorem_of_their_measure():
    curves, responses = (Part("several", loss, every_step(), slots=2).certificate for loss in (CURVE, PureDP(1)))
    assert curves.rests_on("Henzinger et al. 2024, Cor 14.7") and not curves.rests_on("Thm 4.12")
    assert responses.rests_on("Henzinger et al. 2024, Thm 4.12")
