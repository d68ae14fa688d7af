"""The public names: the one list of them.

Type checkers and editors read it, and so does `counterpoint.names`, which imports each name when it is first used.
"""

from counterpoint import (
    datasets as datasets,
    local as local,
    verify as verify,
)
from counterpoint.composition.fixed import compose as compose
from counterpoint.composition.rules.filters import (
    Filter as Filter,
    Remaining as Remaining,
)
from counterpoint.composition.rules.odometers import (
    Odometer as Odometer,
    truncated as truncated,
)
from counterpoint.composition.rules.parallel import Parallel as Parallel
from counterpoint.composition.rules.rule import (
    Account as Account,
    Rule as Rule,
)
from counterpoint.composition.rules.slots import Slots as Slots
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
from counterpoint.ledger.places import Durable as Durable
from counterpoint.ledger.operating.recovering import recover as recover
from counterpoint.ledger.operating.retiring import retire as retire
from counterpoint.mechanisms.additive import (
    Gaussian as Gaussian,
    Laplace as Laplace,
)
from counterpoint.mechanisms.composed.composite import (
    Composite as Composite,
    Context as Context,
    Own as Own,
    Part as Part,
)
from counterpoint.mechanisms.composed.concurrent import (
    Concurrent as Concurrent,
    Launch as Launch,
    Refused as Refused,
)
from counterpoint.mechanisms.composed.guess_and_check import (
    Guess as Guess,
    GuessAndCheck as GuessAndCheck,
)
from counterpoint.mechanisms.composed.linear_queries import (
    LinearGuess as LinearGuess,
    LinearGuessAndCheck as LinearGuessAndCheck,
)
from counterpoint.mechanisms.composed.multiplicative_weights import (
    MultiplicativeWeights as MultiplicativeWeights,
    multiplicative_weights as multiplicative_weights,
)
from counterpoint.mechanisms.composed.postprocessing import (
    Postprocessor as Postprocessor,
    postprocess as postprocess,
)
from counterpoint.mechanisms.composed.sampled import Sampled as Sampled
from counterpoint.mechanisms.counting.counters import (
    Counter as Counter,
    PastHorizon as PastHorizon,
    SeparatedCounter as SeparatedCounter,
)
from counterpoint.mechanisms.counting.monotone_histogram import MonotoneHistogram as MonotoneHistogram
from counterpoint.mechanisms.counting.monotone_queries import (
    MonotoneQuery as MonotoneQuery,
    max_of as max_of,
    monotone_query as monotone_query,
)
from counterpoint.mechanisms.counting.vector_counters import (
    SeparatedVectorCounter as SeparatedVectorCounter,
    VectorCounter as VectorCounter,
)
from counterpoint.mechanisms.counting.windows import Windowed as Windowed
from counterpoint.mechanisms.dice import Dice as Dice
from counterpoint.mechanisms.interaction import (
    Analyst as Analyst,
    View as View,
    interact as interact,
)
from counterpoint.mechanisms.mechanism import (
    Chosen as Chosen,
    Mechanism as Mechanism,
    State as State,
)
from counterpoint.mechanisms.randomized_response import (
    InteractiveRandomizedResponse as InteractiveRandomizedResponse,
    RandomizedResponse as RandomizedResponse,
)
from counterpoint.mechanisms.selecting.noisy_max import NoisyMax as NoisyMax
from counterpoint.mechanisms.selecting.gaussian_selection import GaussianSelection as GaussianSelection
from counterpoint.mechanisms.selecting.partition_selection import PartitionSelection as PartitionSelection
from counterpoint.mechanisms.selecting.sparse_vector import (
    AboveThreshold as AboveThreshold,
    SparseVector as SparseVector,
    Threshold as Threshold,
)
from counterpoint.privacy import relations as relations
from counterpoint.privacy.certificates import Certificate as Certificate
from counterpoint.privacy.claims import Claim as Claim
from counterpoint.privacy.losses import (
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
from counterpoint.privacy.messages import (
    Ask as Ask,
    Message as Message,
    To as To,
    Update as Update,
)
from counterpoint.privacy.relations import Relation as Relation
from counterpoint.privacy.secret import Secret as Secret
from counterpoint.randomness.coins import Coins as Coins
from counterpoint.randomness.enumerated import (
    EnumeratedCoins as EnumeratedCoins,
    Law as Law,
)
from counterpoint.randomness.secure import SecureCoins as SecureCoins
from counterpoint.randomness.seeded import SeededCoins as SeededCoins
from counterpoint.randomness.tape import (
    RecordingCoins as RecordingCoins,
    ReplayedCoins as ReplayedCoins,
)
from counterpoint.service.client.connections import connect as connect, connect_async as connect_async
from counterpoint.service.client.following import ItemsArrived as ItemsArrived, LossChanged as LossChanged
from counterpoint.session.answering.choices import (
    FloatChoice as FloatChoice,
    IntChoice as IntChoice,
    KeysAnswer as KeysAnswer,
    TextChoice as TextChoice,
    TupleAnswer as TupleAnswer,
)
from counterpoint.session.answering.scalars import FloatAnswer as FloatAnswer, IntAnswer as IntAnswer
from counterpoint.session.answering.several import RecordAnswer as RecordAnswer, SeveralAnswer as SeveralAnswer
from counterpoint.session.answering.tables import TableAnswer as TableAnswer
from counterpoint.session.handle import Handle as Handle
from counterpoint.session.partition import Partition as Partition
from counterpoint.session.quote import Quote as Quote
from counterpoint.session.session import (
    Session as Session,
    open as open,
)
from counterpoint.session.sql.query import SQLQuery as SQLQuery
from counterpoint.session.sql.select import sql as sql
from counterpoint.sources.asking.choosing.choices import (
    keys as keys,
    median as median,
    quantile as quantile,
    quantile_from as quantile_from,
)
from counterpoint.sources.asking.choosing.extremes import (
    bounds as bounds,
    maximum as maximum,
    minimum as minimum,
)
from counterpoint.sources.asking.requests import (
    count as count,
    count_distinct as count_distinct,
    histogram as histogram,
    mean as mean,
    ranks as ranks,
    sum as sum,
)
from counterpoint.sources.asking.selects import (
    select as select,
)
from counterpoint.sources.asking.choosing.tops import (
    top as top,
)
from counterpoint.sources.asking.variances import (
    stdev as stdev,
    variance as variance,
)
from counterpoint.sources.declaring.columns import (
    boolean as boolean,
    category as category,
    number as number,
    text as text,
    whole as whole,
)
from counterpoint.sources.declaring.dates import date as date
from counterpoint.sources.declaring.derived import derived as derived
from counterpoint.sources.declaring.from_types import (
    Columns as Columns,
    columns_from as columns_from,
)
from counterpoint.sources.declaring.timestamps import timestamp as timestamp
from counterpoint.sources.declaring.units import each_row as each_row
from counterpoint.sources.live.live_table import LiveTable as LiveTable
from counterpoint.sources.several.lookup import Lookup as Lookup
from counterpoint.sources.several.sources import Sources as Sources
from counterpoint.sources.source import Source as Source
from counterpoint.sources.streams.stream import (
    Stream as Stream,
    total as total,
)
from counterpoint.sources.tables.from_sample import columns_like as columns_like
from counterpoint.sources.tables.table import Table as Table

__version__: str
__all__: list[str]

def load_everything() -> None: ...
