"""Request ids: a client that may have to retry a request gives it an id, and the request then happens once.

Launches, asks and appends to a stream have ids under the same limits. An id is public: the ledger stores it
unencrypted. A used id is kept for ever, or a late retry would count as a new request.

>>> checked_id("monday")
'monday'
>>> checked_id("")
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: a request id must be a text of 1 to 256 characters, such as 'monday', not the ...
"""

from counterpoint.errors import InvalidParameter, shown
from counterpoint.sources.declaring.columns import is_readable

_LONGEST = 256


def checked_id(given: object) -> str:
    """The id as a plain text that every database can store, or `InvalidParameter`."""
    text = str.__str__(given) if isinstance(given, str) else ""
    if not 0 < len(text) <= _LONGEST or not is_readable(text):
        what = f"not the {type(given).__name__} {shown(given)}"
        raise InvalidParameter(f"a request id must be a text of 1 to {_LONGEST} characters, such as 'monday', {what}")
    return text
