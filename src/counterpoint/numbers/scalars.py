"""Scalars of numpy as Python's own values: what is stored, compared and hashed is the same, whichever was given.

A key that was read off a numpy array or a pandas frame is a `np.int64` or a `np.str_`. It names what the plain value
names, so it is replaced by it where it is given. Numpy is not imported to find out.

>>> import numpy as np
>>> plain_scalar(np.int64(3)), plain_scalar(np.bool_(True)), plain_scalar(np.str_("CA")), plain_scalar(np.float32(0.1))
(3, True, 'CA', 0.1)
>>> plain_scalar(np.datetime64("2024-02-29")), plain_scalar([1])
(datetime.date(2024, 2, 29), [1])
"""

import sys
from typing import Any


def plain_scalar(value: Any) -> Any:
    """Python's own value for a numpy scalar; anything else as it is.

    A float is the decimal that it prints as, in its own precision. A time of whole days is a date, any other a datetime
    without a zone, if it is a whole number of microseconds; what Python cannot hold stays as it is.
    """
    numpy: Any = sys.modules.get("numpy")  # where it was never imported, there are no scalars of it
    if numpy is None or not isinstance(value, numpy.generic):
        return value
    if isinstance(value, numpy.bool_ | numpy.integer | numpy.str_) and not isinstance(value, numpy.timedelta64):
        return value.item()
    if isinstance(value, numpy.floating):
        return float(str(value))
    return _time(value, numpy) if isinstance(value, numpy.datetime64) else value


def _time(value: Any, numpy: Any) -> Any:
    """A date or a datetime; what is neither (no time at all, nanoseconds, the year 10000) stays as it is."""
    for unit in ("D", "us"):
        found = value.astype(f"datetime64[{unit}]")
        if found.astype(value.dtype) == value == found:  # converted back, too: numpy's conversions may wrap around
            return value if isinstance(found.item(), int) else found.item()
    return value
