"""Ids that whoever sends something chooses, so that it can be sent again and still happens once.

Launches, asks and what is appended to a stream are named by texts under the same limits. An id is public: it stands in
the record in the open. One that was used is never forgotten, or a late retry would be taken for something new.

>>> checked_id("monday")
'monday'
>>> checked_id("")
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: a request id is a text of 1 to 256 characters, such as 'monday', not the str ''
"""

from counterpoint.errors import InvalidParameter, shown
from counterpoint.sources.declaring.columns import is_readable

_LONGEST = 256


def checked_id(given: object) -> str:
    """The id as a plain text that every database can hold, or the reason why it is none."""
    text = str.__str__(given) if isinstance(given, str) else ""
    if not 0 < len(text) <= _LONGEST or not is_readable(text):
        what = f"not the {type(given).__name__} {shown(given)}"
        raise InvalidParameter(f"a request id is a text of 1 to {_LONGEST} characters, such as 'monday', {what}")
    return text
