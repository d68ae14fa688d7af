"""An answer as a picture: each value with the whisker of its error. It shows what the answer's table has.

>>> import counterpoint as cp
>>> session = cp.Session(cp.Stream(bound=1), within=cp.PureDP(1))
>>> session.ask(cp.total(), epsilon=0.1).plot().sure
'95 %'
"""

from collections.abc import Iterator

from counterpoint.errors import InvalidParameter
from counterpoint.numbers import Number
from counterpoint.numbers.exact import exact
from counterpoint.pictures.picture import Picture
from counterpoint.pictures.whiskers import Whisker, Whiskers
from counterpoint.session.answering.answer_table import AnswerTable


def pictured(table: AnswerTable, request: object, probability: Number) -> Picture:
    """The table as whiskers on one scale."""
    if len(table.values) > 1:
        names = list(table.values)
        raise InvalidParameter(
            f"{', '.join(names)} have no common scale: plot one of them, as in answer[{names[-1]!r}].plot(), or "
            f"answer.part({names[-1]!r}).plot() if there are keys"
        )
    made_up = " (made up)" if table.made_up else ""
    measured = f", {table.measured}" if table.measured else ""
    sure = f"{float(100 * exact(probability)):g} %"
    return Whiskers(f"{request!r}{measured}{made_up}", tuple(table.keys), tuple(_whiskers(table)), sure)


def _whiskers(table: AnswerTable) -> Iterator[Whisker]:
    keys = list(zip(*table.keys.values(), strict=True)) or [()] * len(table.notes)
    ((head, values),) = table.values.items()
    stated, errors = table.errors[head]
    for key, value, error, note in zip(keys, values, errors, table.notes, strict=True):
        yield _whisker(" · ".join(map(str, key)), value, stated, error, note)


def _whisker(key: str, value: object, stated: str, error: object, note: str) -> Whisker:
    if isinstance(value, str):
        raise InvalidParameter("these answers are texts, which no scale shows: print them, or use to_pandas()")
    assert isinstance(value, int | float | None) and isinstance(error, int | float | None)
    if stated.endswith("rank_error"):  # how far off a chosen value's rank is, which is not on this scale
        return Whisker(key, value, None, f"rank ± {error} rows")
    return Whisker(key, value, error, note or ("" if value is not None else "noise left no value"), bool(note))
