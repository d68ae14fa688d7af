"""Every error that Counterpoint raises, in one tree.

CounterpointError
├── InvalidParameter     a parameter is not a number, out of range, or too long (also a ValueError)
│   └── NotTotal             a function of secret data failed, or a mechanism's code failed in a step
├── InvalidRequest       a message that this mechanism does not accept; nothing changed
│   ├── UnsupportedSQL       a text outside of the SQL that is answered: what was found, where, and what would work
│   └── DataLost             the connection to the data was lost: bind it again, and repeat the request by its id
├── BudgetExceeded       the rule refuses the launch; nothing was charged
├── NotCovered           no theorem covers this case; says which case one would cover
├── RelationMismatch     the claim speaks of other neighbours than the data has
├── Halted               the mechanism has answered for the last time
├── SecretLeak           a decision, an answer or a display would have depended on raw data
├── TapeMismatch         two runs that should have tossed the same coins did not
├── DataReplaced         the rows of this version of the data were replaced: launch again, on the current version
├── DataFailed           the data could not answer, and are closed for everyone until the custodian has looked
├── NotAllowed           the caller may not do this
├── ServiceFailed        a service could not be reached, or failed: repeat the call by its id
├── FeedFailed           the source of a feed failed; what had arrived stays, and feeding again goes on from there
└── LedgerError          the durable record cannot be read, written or trusted
    ├── RequestConflict      this request id was used before, for another request
    ├── LedgerBusy           another process has this ledger open
    ├── ForkedProcess        a ledger, table or stream was used in a fork of the process that opened it
    ├── LedgerFailed         a write or a commit failed: reopen the ledger and repeat what was not answered
    │   └── WitnessFailed        the witness cannot be reached, read or written: nothing was released
    ├── LedgerTampered       the chain of entries does not hold, or does not match what is stored
    ├── LedgerRolledBack     the witness has seen a later state of this ledger, or another one
    ├── Unsealable           a state, seed or answer cannot be opened with the key at hand
    ├── DataChanged          the data is not what this ledger was made for
    │   └── DataInUse            the data belongs to another session, which has a budget for it
    └── UnknownSchema        the ledger was written by a newer version, or is no ledger

Each says what was asked, what the limit is and what would work; none carries a value derived from data. Beside the
tree stands `CustodianWarning`, which is no error: binding a table warns the custodian of values that were lost or
changed.

>>> from counterpoint import CounterpointError, PureDP
>>> try:
...     PureDP(-1)
... except CounterpointError as error:
...     print(error)
epsilon must be at least 0, but -1 was given
"""

from types import TracebackType

__all__ = [
    "BudgetExceeded",
    "CounterpointError",
    "CustodianWarning",
    "DataChanged",
    "DataFailed",
    "DataInUse",
    "DataLost",
    "DataReplaced",
    "FeedFailed",
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
    "NotGranted",
    "NotTotal",
    "RelationMismatch",
    "RequestConflict",
    "SecretLeak",
    "ServiceFailed",
    "TapeMismatch",
    "UnknownSchema",
    "Unsealable",
    "UnsupportedSQL",
    "WitnessFailed",
]


class CounterpointError(Exception):
    """The root of the tree above: catch it to catch every error of this package."""


class Refusal:
    """What a person asked for and does not get: a notebook shows it as one line instead of a traceback.

    The line says what was asked, the limit and what fits. If the call was made inside a function, it also names the
    function and the line. Errors that point at a fault (`SecretLeak`, `LedgerTampered`, ...) keep their traceback.
    IPython calls `_render_traceback_`; `%debug` and `traceback.print_last()` work as always.

    >>> BudgetExceeded("PureDP(2) does not fit")._render_traceback_()
    ['BudgetExceeded: PureDP(2) does not fit']
    """

    __traceback__: TracebackType | None

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}{_caller(self.__traceback__)}"]


def _caller(trace: TracebackType | None) -> str:
    """The function outside of this package that made the call, unless it is the cell or the script itself."""
    function, line = "<module>", 0
    while trace is not None:
        code = trace.tb_frame.f_code
        if trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] != "counterpoint":
            function, line = code.co_name, trace.tb_lineno
        trace = trace.tb_next
    return "" if function.startswith("<") else f" (in {function}, line {line})"


class Interruption(BaseException):
    """Ends a computation from outside, as an interrupt from the keyboard does: the interrupted code did not fail.

    Every other error from code that sees data counts as a failure of that code, even one that is no `Exception`, such
    as a panic in an extension. Its message may quote the data.
    """


INTERRUPTIONS = (KeyboardInterrupt, SystemExit, GeneratorExit, Interruption)


def bare(error: BaseException) -> BaseException:
    """The same error without its chain and the frames that it came through, whose locals may hold raw values.

    `raise ... from None` only hides a chain when it is shown. Call this outside of `except`, or Python chains it again.

    >>> try:
    ...     1 // 0
    ... except ZeroDivisionError as error:
    ...     caught = error
    >>> bare(caught).__traceback__ is None
    True
    """
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)


class InvalidParameter(Refusal, CounterpointError, ValueError):
    """A parameter is not a number, out of range, or too long."""


class NotTotal(InvalidParameter):
    """A function of secret data failed, or a mechanism's code failed in a step. The error is the same for all data."""


class InvalidRequest(Refusal, CounterpointError):
    """A message that the mechanism does not accept; state, charge and coins are untouched."""


class UnsupportedSQL(InvalidRequest):
    """A text outside of the SQL that is answered. It carries what was `found`, `where`, and what `works` instead."""

    def __init__(self, found: str, where: str, works: str) -> None:
        at = f" ({where})" if where else ""
        super().__init__(f"Counterpoint's SQL does not support {found}{at}: {works}")
        self.found = found
        self.where = where
        self.works = works


class DataLost(InvalidRequest):
    """The connection to the data was lost. Bind the data again and repeat the request by its id: it is charged once."""


class DataReplaced(Refusal, CounterpointError):
    """The version of the data that this is about was replaced by a newer one. What was answered is found by its id.

    A handle keeps the version that it was launched on; once the rows of that version are gone, it answers no more.
    """


class DataFailed(CounterpointError):
    """No way to compute an answer worked, and the data are closed for everyone until their custodian reopens them.

    The text is one constant. `reason` names the types of what was raised, for the custodian's log alone.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(
            "the data could not answer and are closed, for everyone, until their custodian has looked into it: then "
            "repeat the request by its id; nothing is charged or drawn twice"
        )
        self.reason = reason


class BudgetExceeded(Refusal, CounterpointError):
    """The rule refuses a launch. It carries what was `requested`, what is `remaining` and what `would_fit`."""

    def __init__(
        self, message: str, *, requested: object = None, remaining: object = None, would_fit: object = None
    ) -> None:
        super().__init__(message)
        self.requested = requested
        self.remaining = remaining
        self.would_fit = would_fit


class NotCovered(Refusal, CounterpointError):
    """No theorem covers this case, so it is refused; the message names what would be covered."""


class RelationMismatch(Refusal, CounterpointError):
    """A claim about one kind of neighbours was used where the data has another kind."""


class Halted(Refusal, CounterpointError):
    """The mechanism has given its last answer."""


class SecretLeak(CounterpointError):
    """A decision, an answer or a display would have depended on raw data."""


class TapeMismatch(CounterpointError):
    """A run that was repeated on equal coins came out differently, or asked for other coins."""


class NotAllowed(Refusal, CounterpointError):
    """The caller may not do this."""


class NotGranted(NotAllowed):
    """The grant that a request was made under is another's, has ended, or does not cover it. Nothing was charged."""


class ServiceFailed(CounterpointError):
    """A service could not be reached, or failed. Repeat the call with the same id: it is charged once."""


class FeedFailed(CounterpointError):
    """The source of a feed failed. Whole batches arrived before; feed again, and it continues after them."""


class CustodianWarning(UserWarning):
    """More than 1 % of a column's values, or of the rows, were lost or changed as a table was bound; see `Table.check`.

    It is for the custodian's process alone and says where, never how much; analysts of a service see nothing of it.
    """


class LedgerError(CounterpointError):
    """The durable record cannot be read, written or trusted."""


class RequestConflict(Refusal, LedgerError):
    """A request id that was used before, for another request."""


class LedgerBusy(Refusal, LedgerError):
    """Another process has this ledger open; an SQLite ledger has one process at a time."""


class ForkedProcess(LedgerError):
    """A session, ledger, table or stream was used in a fork of the process that opened it; nothing has changed there.

    Open it after the fork, in the process that uses it. Processes share a budget through a ledger in PostgreSQL.
    """


class LedgerFailed(LedgerError):
    """A write or a commit failed. Released answers are safe: open the ledger again, then repeat requests by id."""


class WitnessFailed(LedgerFailed):
    """The witness cannot be reached, read or written. Nothing was released: mend it, then repeat requests by id."""


class LedgerTampered(LedgerError):
    """The chain of entries does not hold, or does not match what is stored beside it."""


class LedgerRolledBack(LedgerError):
    """The witness has seen a later state of this ledger, or another one: an old copy was put back, or it was forked."""


class Unsealable(LedgerError):
    """A state, a seed or an answer cannot be opened with the key at hand; charges are not affected."""


class DataChanged(Refusal, LedgerError):
    """The data is not what this ledger was made for, or cannot be recognised after a restart."""


class DataInUse(DataChanged):
    """The data belongs to another session, which has a budget for it: delegate a part of that budget."""


class UnknownSchema(LedgerError):
    """The ledger was written by a newer version of this package, or the file is not a ledger."""


def shown(given: object, most: int = 40) -> str:
    """What was given, as an error shows it: its first characters, or its type if it cannot be written out.

    >>> shown("age"), shown("x" * 100, most=6), shown(10**5000)
    ("'age'", "'xxxxx", 'a int that cannot be written out')
    """
    try:
        return repr(given[:most] if isinstance(given, str) else given)[:most]
    except Exception:  # an integer of thousands of digits, or an object of a class of the caller's
        return f"a {type(given).__name__} that cannot be written out"
