"""The public names of `counterpoint.composition`."""

from counterpoint.composition.rule import Remaining as Remaining, Rule as Rule
from counterpoint.composition.odometers import truncated as truncated
from counterpoint.composition.accumulator import Account as Account
from counterpoint.privacy.certificates import Certificate as Certificate

__all__: list[str]
