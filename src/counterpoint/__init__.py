"""Counterpoint: interactive differential privacy.

Answer adaptive, interleaved questions about sensitive data with mechanisms that keep secret state, and know at every
moment what privacy has been lost, and by which theorem.

>>> import counterpoint as cp
>>> rule = cp.Filter(cp.ApproxDP(1.0, 1e-6))
>>> account = rule.admit(rule.start(), cp.Laplace(epsilon=0.4, asks=4).claim)
>>> rule.loss(account)
ApproxDP(0.4, 1e-6)

The public names are listed below by the room they live in, and each is imported when it is first used (PEP 562), so
that importing the package costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0.dev0"

_ROOMS = {
    "": ("datasets", "verify"),
    "composition.fixed": ("compose",),
    "composition.rules.filters": ("Filter", "Remaining"),
    "composition.rules.odometers": ("Odometer", "truncated"),
    "composition.rules.parallel": ("Parallel",),
    "composition.rules.rule": ("Account", "Rule"),
    "composition.rules.slots": ("Slots",),
    "errors": (
        "BudgetExceeded",
        "CounterpointError",
        "DataChanged",
        "DataInUse",
        "ForkedProcess",
        "Halted",
        "InvalidParameter",
        "InvalidRequest",
        "LedgerBusy",
        "LedgerError",
        "LedgerFailed",
        "LedgerRolledBack",
        "LedgerTampered",
        "NotAllowed",
        "NotCovered",
        "NotTotal",
        "RelationMismatch",
        "RequestConflict",
        "SecretLeak",
        "TapeMismatch",
        "UnknownSchema",
        "Unsealable",
    ),
    "ledger.places": ("Durable",),
    "local.cores": ("Cores", "core_decomposition", "core_protocol"),
    "local.frequencies": ("Frequencies", "heavy_hitters", "histogram_of_users"),
    "local.graph": ("Graph",),
    "local.multi_sparse_vector": ("MultiSparseVector",),
    "local.properties": ("AtMost", "Data"),
    "local.protocol": ("Done", "Protocol", "Round", "Server"),
    "local.users": ("Crowd",),
    "mechanisms.additive": ("Gaussian", "Laplace"),
    "mechanisms.composed.composite": ("Composite", "Context", "Own", "Part"),
    "mechanisms.composed.concurrent": ("Concurrent", "Launch", "Refused"),
    "mechanisms.counting.counters": ("Counter", "PastHorizon"),
    "mechanisms.dice": ("Dice",),
    "mechanisms.composed.guess_and_check": ("Guess", "GuessAndCheck"),
    "mechanisms.interaction": ("Analyst", "View", "interact"),
    "mechanisms.composed.linear_queries": ("LinearGuess", "LinearGuessAndCheck"),
    "mechanisms.mechanism": ("Chosen", "Mechanism", "State"),
    "mechanisms.counting.monotone_histogram": ("MonotoneHistogram",),
    "mechanisms.counting.monotone_queries": ("MonotoneQuery", "max_of", "monotone_query"),
    "mechanisms.composed.multiplicative_weights": ("MultiplicativeWeights", "multiplicative_weights"),
    "mechanisms.selecting.noisy_max": ("NoisyMax",),
    "mechanisms.selecting.partition_selection": ("PartitionSelection",),
    "mechanisms.composed.postprocessing": ("Postprocessor", "postprocess"),
    "mechanisms.randomized_response": ("InteractiveRandomizedResponse", "RandomizedResponse"),
    "mechanisms.selecting.sparse_vector": ("AboveThreshold", "SparseVector", "Threshold"),
    "mechanisms.counting.vector_counters": ("VectorCounter",),
    "privacy": ("relations",),
    "privacy.certificates": ("Certificate",),
    "privacy.claims": ("Claim",),
    "privacy.losses": (
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
    ),
    "privacy.messages": ("Ask", "Message", "To", "Update"),
    "privacy.relations": ("Relation",),
    "privacy.secret": ("Secret",),
    "randomness.coins": ("Coins",),
    "randomness.enumerated": ("EnumeratedCoins", "Law"),
    "randomness.secure": ("SecureCoins",),
    "randomness.seeded": ("SeededCoins",),
    "randomness.tape": ("RecordingCoins", "ReplayedCoins"),
    "session.partition": ("Partition",),
    "session.handle": ("Handle",),
    "session.session": ("Quote", "Session", "open"),
    "sources.asking.choices": ("keys", "quantile", "quantile_from"),
    "sources.declaring.columns": ("boolean", "category", "number", "text"),
    "sources.declaring.dates": ("date",),
    "sources.asking.requests": ("count", "count_distinct", "histogram", "mean", "ranks", "sum"),
    "sources.source": ("Source",),
    "sources.streams.stream": ("Stream", "total"),
    "sources.tables.table": ("Table",),
    "verify.games.two_worlds": ("two_adaptive_worlds", "two_worlds"),
}
_HOMES = {name: f"counterpoint.{room}".rstrip(".") for room, names in _ROOMS.items() for name in names}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - one list is enough


def __getattr__(name: str) -> object:
    """Import a public name where it lives, once."""
    if name not in _HOMES:
        raise AttributeError(f"counterpoint has no {name!r}")
    home = import_module(_HOMES[name])
    value = vars(home)[name] if name in vars(home) else import_module(f"{_HOMES[name]}.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def load_everything() -> None:
    """Import every public name: whoever reads stored data must know all that may be written in it.

    >>> load_everything()
    """
    for name in __all__:
        __getattr__(name)


if TYPE_CHECKING:
    from counterpoint import datasets as datasets
    from counterpoint import verify as verify
    from counterpoint.composition.fixed import compose as compose
    from counterpoint.composition.rules.filters import Filter as Filter
    from counterpoint.composition.rules.filters import Remaining as Remaining
    from counterpoint.composition.rules.odometers import Odometer as Odometer
    from counterpoint.composition.rules.odometers import truncated as truncated
    from counterpoint.composition.rules.parallel import Parallel as Parallel
    from counterpoint.composition.rules.rule import Account as Account
    from counterpoint.composition.rules.rule import Rule as Rule
    from counterpoint.composition.rules.slots import Slots as Slots
    from counterpoint.errors import BudgetExceeded as BudgetExceeded
    from counterpoint.errors import CounterpointError as CounterpointError
    from counterpoint.errors import DataChanged as DataChanged
    from counterpoint.errors import DataInUse as DataInUse
    from counterpoint.errors import ForkedProcess as ForkedProcess
    from counterpoint.errors import Halted as Halted
    from counterpoint.errors import InvalidParameter as InvalidParameter
    from counterpoint.errors import InvalidRequest as InvalidRequest
    from counterpoint.errors import LedgerBusy as LedgerBusy
    from counterpoint.errors import LedgerError as LedgerError
    from counterpoint.errors import LedgerFailed as LedgerFailed
    from counterpoint.errors import LedgerRolledBack as LedgerRolledBack
    from counterpoint.errors import LedgerTampered as LedgerTampered
    from counterpoint.errors import NotAllowed as NotAllowed
    from counterpoint.errors import NotCovered as NotCovered
    from counterpoint.errors import NotTotal as NotTotal
    from counterpoint.errors import RelationMismatch as RelationMismatch
    from counterpoint.errors import RequestConflict as RequestConflict
    from counterpoint.errors import SecretLeak as SecretLeak
    from counterpoint.errors import TapeMismatch as TapeMismatch
    from counterpoint.errors import UnknownSchema as UnknownSchema
    from counterpoint.errors import Unsealable as Unsealable
    from counterpoint.ledger.places import Durable as Durable
    from counterpoint.local.cores import Cores as Cores
    from counterpoint.local.cores import core_decomposition as core_decomposition
    from counterpoint.local.cores import core_protocol as core_protocol
    from counterpoint.local.frequencies import Frequencies as Frequencies
    from counterpoint.local.frequencies import heavy_hitters as heavy_hitters
    from counterpoint.local.frequencies import histogram_of_users as histogram_of_users
    from counterpoint.local.graph import Graph as Graph
    from counterpoint.local.multi_sparse_vector import MultiSparseVector as MultiSparseVector
    from counterpoint.local.properties import AtMost as AtMost
    from counterpoint.local.properties import Data as Data
    from counterpoint.local.protocol import Done as Done
    from counterpoint.local.protocol import Protocol as Protocol
    from counterpoint.local.protocol import Round as Round
    from counterpoint.local.protocol import Server as Server
    from counterpoint.local.users import Crowd as Crowd
    from counterpoint.mechanisms.additive import Gaussian as Gaussian
    from counterpoint.mechanisms.additive import Laplace as Laplace
    from counterpoint.mechanisms.composed.composite import Composite as Composite
    from counterpoint.mechanisms.composed.composite import Context as Context
    from counterpoint.mechanisms.composed.composite import Own as Own
    from counterpoint.mechanisms.composed.composite import Part as Part
    from counterpoint.mechanisms.composed.concurrent import Concurrent as Concurrent
    from counterpoint.mechanisms.composed.concurrent import Launch as Launch
    from counterpoint.mechanisms.composed.concurrent import Refused as Refused
    from counterpoint.mechanisms.composed.guess_and_check import Guess as Guess
    from counterpoint.mechanisms.composed.guess_and_check import GuessAndCheck as GuessAndCheck
    from counterpoint.mechanisms.composed.linear_queries import LinearGuess as LinearGuess
    from counterpoint.mechanisms.composed.linear_queries import LinearGuessAndCheck as LinearGuessAndCheck
    from counterpoint.mechanisms.composed.multiplicative_weights import MultiplicativeWeights as MultiplicativeWeights
    from counterpoint.mechanisms.composed.multiplicative_weights import multiplicative_weights as multiplicative_weights
    from counterpoint.mechanisms.composed.postprocessing import Postprocessor as Postprocessor
    from counterpoint.mechanisms.composed.postprocessing import postprocess as postprocess
    from counterpoint.mechanisms.counting.counters import Counter as Counter
    from counterpoint.mechanisms.counting.counters import PastHorizon as PastHorizon
    from counterpoint.mechanisms.counting.monotone_histogram import MonotoneHistogram as MonotoneHistogram
    from counterpoint.mechanisms.counting.monotone_queries import MonotoneQuery as MonotoneQuery
    from counterpoint.mechanisms.counting.monotone_queries import max_of as max_of
    from counterpoint.mechanisms.counting.monotone_queries import monotone_query as monotone_query
    from counterpoint.mechanisms.counting.vector_counters import VectorCounter as VectorCounter
    from counterpoint.mechanisms.dice import Dice as Dice
    from counterpoint.mechanisms.interaction import Analyst as Analyst
    from counterpoint.mechanisms.interaction import View as View
    from counterpoint.mechanisms.interaction import interact as interact
    from counterpoint.mechanisms.mechanism import Chosen as Chosen
    from counterpoint.mechanisms.mechanism import Mechanism as Mechanism
    from counterpoint.mechanisms.mechanism import State as State
    from counterpoint.mechanisms.randomized_response import (
        InteractiveRandomizedResponse as InteractiveRandomizedResponse,
    )
    from counterpoint.mechanisms.randomized_response import RandomizedResponse as RandomizedResponse
    from counterpoint.mechanisms.selecting.noisy_max import NoisyMax as NoisyMax
    from counterpoint.mechanisms.selecting.partition_selection import PartitionSelection as PartitionSelection
    from counterpoint.mechanisms.selecting.sparse_vector import AboveThreshold as AboveThreshold
    from counterpoint.mechanisms.selecting.sparse_vector import SparseVector as SparseVector
    from counterpoint.mechanisms.selecting.sparse_vector import Threshold as Threshold
    from counterpoint.privacy import relations as relations
    from counterpoint.privacy.certificates import Certificate as Certificate
    from counterpoint.privacy.claims import Claim as Claim
    from counterpoint.privacy.losses import ApproxDP as ApproxDP
    from counterpoint.privacy.losses import ApproxzCDP as ApproxzCDP
    from counterpoint.privacy.losses import GaussianDP as GaussianDP
    from counterpoint.privacy.losses import Loss as Loss
    from counterpoint.privacy.losses import OneSidedDP as OneSidedDP
    from counterpoint.privacy.losses import ProbabilisticDP as ProbabilisticDP
    from counterpoint.privacy.losses import PureDP as PureDP
    from counterpoint.privacy.losses import RenyiDP as RenyiDP
    from counterpoint.privacy.losses import TradeOff as TradeOff
    from counterpoint.privacy.losses import Unbounded as Unbounded
    from counterpoint.privacy.losses import tCDP as tCDP
    from counterpoint.privacy.losses import zCDP as zCDP
    from counterpoint.privacy.messages import Ask as Ask
    from counterpoint.privacy.messages import Message as Message
    from counterpoint.privacy.messages import To as To
    from counterpoint.privacy.messages import Update as Update
    from counterpoint.privacy.relations import Relation as Relation
    from counterpoint.privacy.secret import Secret as Secret
    from counterpoint.randomness.coins import Coins as Coins
    from counterpoint.randomness.enumerated import EnumeratedCoins as EnumeratedCoins
    from counterpoint.randomness.enumerated import Law as Law
    from counterpoint.randomness.secure import SecureCoins as SecureCoins
    from counterpoint.randomness.seeded import SeededCoins as SeededCoins
    from counterpoint.randomness.tape import RecordingCoins as RecordingCoins
    from counterpoint.randomness.tape import ReplayedCoins as ReplayedCoins
    from counterpoint.session.handle import Handle as Handle
    from counterpoint.session.partition import Partition as Partition
    from counterpoint.session.session import Quote as Quote
    from counterpoint.session.session import Session as Session
    from counterpoint.session.session import open as open
    from counterpoint.sources.asking.choices import keys as keys
    from counterpoint.sources.asking.choices import quantile as quantile
    from counterpoint.sources.asking.choices import quantile_from as quantile_from
    from counterpoint.sources.asking.requests import count as count
    from counterpoint.sources.asking.requests import count_distinct as count_distinct
    from counterpoint.sources.asking.requests import histogram as histogram
    from counterpoint.sources.asking.requests import mean as mean
    from counterpoint.sources.asking.requests import ranks as ranks
    from counterpoint.sources.asking.requests import sum as sum
    from counterpoint.sources.declaring.columns import boolean as boolean
    from counterpoint.sources.declaring.columns import category as category
    from counterpoint.sources.declaring.columns import number as number
    from counterpoint.sources.declaring.columns import text as text
    from counterpoint.sources.declaring.dates import date as date
    from counterpoint.sources.source import Source as Source
    from counterpoint.sources.streams.stream import Stream as Stream
    from counterpoint.sources.streams.stream import total as total
    from counterpoint.sources.tables.table import Table as Table
    from counterpoint.verify.games.two_worlds import two_adaptive_worlds as two_adaptive_worlds
    from counterpoint.verify.games.two_worlds import two_worlds as two_worlds
