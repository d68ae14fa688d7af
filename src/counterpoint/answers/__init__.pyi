"""The public names of `counterpoint.answers`."""

from counterpoint.answers.arithmetic import ComputedFloat as ComputedFloat, ComputedInt as ComputedInt
from counterpoint.answers.scalars import (
    FloatChoice as FloatChoice,
    IntChoice as IntChoice,
    KeysAnswer as KeysAnswer,
    TextChoice as TextChoice,
    QuantileAnswer as QuantileAnswer,
    TupleAnswer as TupleAnswer,
    FloatAnswer as FloatAnswer,
    IntAnswer as IntAnswer,
)
from counterpoint.answers.tables import (
    QuantilesAnswer as QuantilesAnswer,
    RecordAnswer as RecordAnswer,
    SeveralAnswer as SeveralAnswer,
    TableAnswer as TableAnswer,
)
from counterpoint.sql_requests.query import SQLQuery as SQLQuery
from counterpoint.queries.quantiles import quantile_from as quantile_from

__all__: list[str]
