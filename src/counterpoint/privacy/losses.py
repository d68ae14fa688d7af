"""All the losses in one place: the seven measures, and four that theorems need beside them.

>>> [loss.__name__ for loss in (PureDP, ApproxDP, zCDP, RenyiDP, tCDP, GaussianDP, TradeOff)]
['PureDP', 'ApproxDP', 'zCDP', 'RenyiDP', 'tCDP', 'GaussianDP', 'TradeOff']
>>> [loss.__name__ for loss in (ProbabilisticDP, OneSidedDP, ApproxzCDP, Unbounded)]
['ProbabilisticDP', 'OneSidedDP', 'ApproxzCDP', 'Unbounded']
"""

from counterpoint.privacy.approx import ApproxDP, ProbabilisticDP
from counterpoint.privacy.approximate_concentrated import ApproxzCDP
from counterpoint.privacy.concentrated import tCDP, zCDP
from counterpoint.privacy.gaussian import GaussianDP
from counterpoint.privacy.loss import Loss
from counterpoint.privacy.one_sided import OneSidedDP
from counterpoint.privacy.pure import PureDP
from counterpoint.privacy.renyi import RenyiDP
from counterpoint.privacy.tradeoff import TradeOff
from counterpoint.privacy.unbounded import Unbounded

__all__ = [
    "ApproxDP",
    "ApproxzCDP",
    "GaussianDP",
    "Loss",
    "OneSidedDP",
    "ProbabilisticDP",
    "PureDP",
    "RenyiDP",
    "TradeOff",
    "Unbounded",
    "tCDP",
    "zCDP",
]
