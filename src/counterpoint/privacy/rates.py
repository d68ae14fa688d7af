"""The rate of a sample, as a kind of parameter: a number above 0 and below 1.

>>> from counterpoint import Laplace, Sampled
>>> Sampled(Laplace(1), rate=1)
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: rate must be above 0 and below 1, not 1: each unit is in the sample with that...
"""

from fractions import Fraction
from typing import Annotated

from counterpoint.errors import InvalidParameter
from counterpoint.numbers import Number, spell
from counterpoint.numbers.exact import exact
from counterpoint.numbers.parameters import Parameter, Read


def _rate(value: object, what: str) -> Fraction:
    rate = exact(value, what)
    if not 0 < rate < 1:
        raise InvalidParameter(
            f"{what} must be above 0 and below 1, not {spell(rate)}: each unit is in the sample with that probability"
        )
    return rate


Rate = Annotated[Parameter[Fraction, Number], Read(_rate)]
"""The rate of a sample: a number above 0 and below 1."""
