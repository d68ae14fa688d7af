"""Exact numbers and certified enclosures: the arithmetic under every privacy claim.

`exact` reads what a person typed as the rational they meant, an `Exact`, which is shown as people write it; `Interval`
carries a real number between two decimals, rounded outward at every step; `float_up` and `float_down` leave the exact
world in a stated direction.
"""

from counterpoint.numbers.exact import Exact, Number, exact, float_down, float_up, format_number
from counterpoint.numbers.interval import (
    Interval,
    Precision,
    certify,
    mills_ratio,
    normal_cell,
    normal_density,
    normal_tail,
    precision,
    sqrt_up,
)

__all__ = [
    "Exact",
    "Interval",
    "Number",
    "Precision",
    "certify",
    "exact",
    "float_down",
    "float_up",
    "format_number",
    "mills_ratio",
    "normal_cell",
    "normal_density",
    "normal_tail",
    "precision",
    "sqrt_up",
]
