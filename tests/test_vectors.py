"""Reference values: every vector is tested somewhere, and each kind says where; those that no test may use are named.

`residues.json` holds the values of a plan for composition, computed with 60 digits by other code.
"""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from counterpoint.coins.enumerated import gaussian_options, rounded_normal_options
from counterpoint.composition.filters import Filter
from counterpoint.composition.fixed import compose
from counterpoint.measures import ApproxDP, SampledGaussianDP

HERE = Path(__file__).parent
RESIDUES = json.loads((HERE / "vectors" / "residues.json").read_text())

USED = {
    "residues.json": {
        "plan_largest_n": "composition/test_planned.py",
        "plan_exchange": "composition/test_planned.py",
        "rest_after_planned": "composition/test_planned.py",
        "gaussian_residue": "composition/test_reserve.py",
        "gaussian_reserve_counts": "composition/test_reserve.py",
        "odometer_mu": "composition/test_readings.py",
        "sampled_gaussian_renyi": "composition/test_sampled_filters.py",
        "noise_variance": "test_vectors.py",
        "fixed_lists_of_sampled_gaussians": "test_vectors.py",
    },
}
"""Where each kind is tested, by file; beside them stand the counts of a float model over random workloads, tuned on 28
of them and run once on 48: they were measured by a model of the filter and not by its code, so no test may use them
(`bench/unseen.py` measures the code on workloads of its own)."""


@pytest.mark.parametrize("file", USED)
def test_every_kind_of_vector_is_tested_where_the_table_says(file):
    vectors = json.loads((HERE / "vectors" / file).read_text())
    assert set(vectors) - {"about"} == set(USED[file])
    for kind, where in USED[file].items():
        assert vectors[kind] and f'["{kind}"]' in (HERE / where).read_text(), kind


def variance(options):
    total = sum(chance for _, chance in options.outcomes)
    return sum(value**2 * Fraction(chance) for value, chance in options.outcomes) / Fraction(total)


@pytest.mark.parametrize("row", RESIDUES["noise_variance"], ids=lambda row: row["sigma"])
def test_the_laws_of_noise_have_the_reference_variances(row):
    sigma2, cut = Fraction(row["sigma"]) ** 2, Fraction(1, 10**30)
    for options, expected in (
        (rounded_normal_options, row["rounded_normal"]),
        (gaussian_options, row["discrete_gaussian"]),
    ):
        assert float(variance(options(sigma2, cut))) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("row", RESIDUES["fixed_lists_of_sampled_gaussians"], ids=lambda row: str(row["budget"]))
def test_so_many_sampled_steps_fit_when_fixed_and_when_chosen_on_the_way(row):
    (epsilon, delta), step = row["budget"], SampledGaussianDP(row["mu"], row["rate"])
    fixed = row["steps_fixed_list"]
    assert compose.optimal([step] * fixed).epsilon_at(delta) <= float(epsilon) * (1 + 1e-4)
    assert compose.optimal([step] * (fixed + 3)).epsilon_at(delta) > float(epsilon)
    order = next(int(key.split("_")[3]) for key in row if key.startswith("steps_renyi"))
    rule = Filter(ApproxDP(epsilon, delta), by="renyi", alpha=order, slack=delta)
    assert rule.would_admit(rule.start(), step) == row[f"steps_renyi_order_{order}_all_delta"]
