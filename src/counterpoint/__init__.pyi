"""The public names: the one list of them.

Type checkers and editors read it, and so does `counterpoint.lazy`, which imports each name when it is first used.
"""

from counterpoint import datasets as datasets, local as local, verify as verify
from counterpoint.composition.fixed import compose as compose
from counterpoint.composition.filters import Filter as Filter
from counterpoint.composition.rule import Remaining as Remaining
from counterpoint.composition.odometers import Odometer as Odometer, truncated as truncated
from counterpoint.composition.parallel import Parallel as Parallel
from counterpoint.measures.accumulator import Account as Account
from counterpoint.composition.rule import Rule as Rule
from counterpoint.composition.slots import Slots as Slots
from counterpoint.errors import (
    BudgetExceeded as BudgetExceeded,
    CounterpointError as CounterpointError,
    DataChanged as DataChanged,
    DataFailed as DataFailed,
    DataInUse as DataInUse,
    DataLost as DataLost,
    FeedFailed as FeedFailed,
    ForkedProcess as ForkedProcess,
    Halted as Halted,
    InvalidParameter as InvalidParameter,
    InvalidRequest as InvalidRequest,
    LedgerBusy as LedgerBusy,
    LedgerError as LedgerError,
    LedgerFailed as LedgerFailed,
    LedgerRolledBack as LedgerRolledBack,
    LedgerTampered as LedgerTampered,
    NotAllowed as NotAllowed,
    NotCovered as NotCovered,
    NotGranted as NotGranted,
    NotTotal as NotTotal,
    RelationMismatch as RelationMismatch,
    RequestConflict as RequestConflict,
    SecretLeak as SecretLeak,
    ServiceFailed as ServiceFailed,
    TapeMismatch as TapeMismatch,
    UnknownSchema as UnknownSchema,
    Unsealable as Unsealable,
    UnsupportedSQL as UnsupportedSQL,
    WitnessFailed as WitnessFailed,
)
from counterpoint.ledger.location import Durable as Durable
from counterpoint.ledger.admin import recover as recover
from counterpoint.ledger.admin import retire as retire
from counterpoint.mechanisms.additive import Gaussian as Gaussian, Laplace as Laplace
from counterpoint.mechanisms.composite import Composite as Composite, Own as Own
from counterpoint.mechanisms.composite_parts import Context as Context, Part as Part
from counterpoint.mechanisms.concurrent import Concurrent as Concurrent, Launch as Launch, Refused as Refused
from counterpoint.mechanisms.guess_and_check import Guess as Guess, GuessAndCheck as GuessAndCheck
from counterpoint.mechanisms.guess_and_check import (
    LinearGuess as LinearGuess,
    LinearGuessAndCheck as LinearGuessAndCheck,
)
from counterpoint.mechanisms.multiplicative_weights import (
    MultiplicativeWeights as MultiplicativeWeights,
    multiplicative_weights as multiplicative_weights,
)
from counterpoint.mechanisms.postprocessing import Postprocessor as Postprocessor, postprocess as postprocess
from counterpoint.mechanisms.sampled import Sampled as Sampled
from counterpoint.continual.counter import (
    Counter as Counter,
    PastHorizon as PastHorizon,
    SeparatedCounter as SeparatedCounter,
)
from counterpoint.continual.monotone_histogram import MonotoneHistogram as MonotoneHistogram
from counterpoint.continual.monotone_queries import (
    MonotoneQuery as MonotoneQuery,
    max_of as max_of,
    monotone_query as monotone_query,
)
from counterpoint.continual.counter import (
    SeparatedVectorCounter as SeparatedVectorCounter,
    VectorCounter as VectorCounter,
)
from counterpoint.continual.windowed import Windowed as Windowed
from counterpoint.mechanisms.randomized_response import Dice as Dice
from counterpoint.mechanisms.interaction import Analyst as Analyst, View as View, interact as interact
from counterpoint.mechanisms.mechanism import Chosen as Chosen, Mechanism as Mechanism, State as State
from counterpoint.mechanisms.randomized_response import (
    InteractiveRandomizedResponse as InteractiveRandomizedResponse,
    RandomizedResponse as RandomizedResponse,
)
from counterpoint.mechanisms.noisy_max import NoisyMax as NoisyMax
from counterpoint.mechanisms.partition_selection import GaussianSelection as GaussianSelection
from counterpoint.mechanisms.partition_selection import PartitionSelection as PartitionSelection
from counterpoint.mechanisms.sparse_vector import AboveThreshold as AboveThreshold, SparseVector as SparseVector
from counterpoint.mechanisms.threshold import Threshold as Threshold
from counterpoint.privacy import relations as relations
from counterpoint.privacy.certificates import Certificate as Certificate
from counterpoint.privacy.claims import Claim as Claim
from counterpoint.measures import (
    ApproxDP as ApproxDP,
    ApproxzCDP as ApproxzCDP,
    GaussianDP as GaussianDP,
    Loss as Loss,
    OneSidedDP as OneSidedDP,
    ProbabilisticDP as ProbabilisticDP,
    PureDP as PureDP,
    RenyiDP as RenyiDP,
    SampledGaussianDP as SampledGaussianDP,
    TradeOff as TradeOff,
    Unbounded as Unbounded,
    tCDP as tCDP,
    zCDP as zCDP,
)
from counterpoint.privacy.messages import Ask as Ask, Message as Message, To as To, Update as Update
from counterpoint.privacy.relations import Relation as Relation
from counterpoint.privacy.secret import Secret as Secret
from counterpoint.coins.coins import Coins as Coins
from counterpoint.coins.enumerated import EnumeratedCoins as EnumeratedCoins, Law as Law
from counterpoint.coins.secure import SecureCoins as SecureCoins
from counterpoint.coins.secure import SeededCoins as SeededCoins
from counterpoint.coins.tape import RecordingCoins as RecordingCoins, ReplayedCoins as ReplayedCoins
from counterpoint.service.client.connect import connect as connect, connect_async as connect_async
from counterpoint.service.client.connect import ItemsArrived as ItemsArrived, LossChanged as LossChanged
from counterpoint.answers.scalars import (
    FloatChoice as FloatChoice,
    IntChoice as IntChoice,
    KeysAnswer as KeysAnswer,
    TextChoice as TextChoice,
    TupleAnswer as TupleAnswer,
)
from counterpoint.answers.scalars import FloatAnswer as FloatAnswer, IntAnswer as IntAnswer
from counterpoint.answers.tables import RecordAnswer as RecordAnswer, SeveralAnswer as SeveralAnswer
from counterpoint.answers.tables import TableAnswer as TableAnswer
from counterpoint.session.handle import Handle as Handle
from counterpoint.session.subsessions import Partition as Partition
from counterpoint.session.handle import Quote as Quote
from counterpoint.session.session import Session as Session, open as open
from counterpoint.sql_requests.query import SQLQuery as SQLQuery
from counterpoint.sql_requests.select import sql as sql
from counterpoint.queries.quantiles import (
    keys as keys,
    median as median,
    quantile as quantile,
    quantile_from as quantile_from,
)
from counterpoint.queries.extremes import bounds as bounds, maximum as maximum, minimum as minimum
from counterpoint.queries.aggregates import (
    count as count,
    count_distinct as count_distinct,
    histogram as histogram,
    mean as mean,
    ranks as ranks,
    sum as sum,
)
from counterpoint.queries.select import select as select
from counterpoint.queries.extremes import top as top
from counterpoint.queries.variance import stdev as stdev, variance as variance
from counterpoint.schema.columns import (
    boolean as boolean,
    category as category,
    number as number,
    text as text,
    whole as whole,
)
from counterpoint.schema.times import date as date
from counterpoint.schema.declaration import derived as derived
from counterpoint.sources.infer import Columns as Columns, columns_from as columns_from
from counterpoint.schema.times import timestamp as timestamp
from counterpoint.schema.units import each_row as each_row
from counterpoint.sources.streams.live_table import LiveTable as LiveTable
from counterpoint.sources.joins import Lookup as Lookup
from counterpoint.sources.combined import Sources as Sources
from counterpoint.queries.source import Source as Source
from counterpoint.sources.streams.stream import Stream as Stream
from counterpoint.sources.streams.items import total as total
from counterpoint.sources.infer import columns_like as columns_like
from counterpoint.sources.table import Table as Table

__version__: str
__all__: list[str]

def load_everything() -> None: ...
