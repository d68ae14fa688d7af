"""Rows on disk: a table larger than memory is copied into a database file, and the engine works within a limit.

The file, and what the engine spills beside it, lie in a new folder of the system's temporary directory (`TMPDIR`) that
only this user may enter. Closing the table removes the folder, and so does the end of the process; a process that is
killed leaves it behind. The rows in it are not encrypted: keep that directory on an encrypted disk.

>>> memory_limit("2GB"), memory_limit("512 MiB")
('2GB', '512 MiB')
>>> memory_limit("2")
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: memory is a text such as '2GB', of at least 100MB, not '2'
"""

import os
import re
import shutil
import tempfile

from counterpoint.errors import InvalidParameter, shown

_MEMORY = re.compile(r"([0-9]{1,9}(?:[.][0-9]{1,3})?) ?(MB|GB|TB|MiB|GiB|TiB)")
_BYTES = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_LEAST = 10**8
"""With less, the engine cannot hold the blocks that it works on."""


def memory_limit(given: object) -> str:
    """A limit on memory as the engine reads it, or `InvalidParameter`."""
    read = _MEMORY.fullmatch(given) if isinstance(given, str) else None
    if read is None or float(read[1]) * _BYTES[read[2]] < _LEAST:
        raise InvalidParameter(f"memory is a text such as '2GB', of at least 100MB, not {shown(given)}")
    return read[0]


class PrivateFolder:
    """A folder that only this user may enter, until it is removed."""

    __slots__ = ("_process_id", "path")

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix="counterpoint-rows-")  # of mode 0700
        self._process_id = os.getpid()

    def remove(self) -> None:
        """Delete it with all that is in it; a fork leaves its parent's folder alone."""
        if self._process_id == os.getpid():
            shutil.rmtree(self.path, ignore_errors=True)
