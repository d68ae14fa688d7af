"""A new file is there after a power cut only if its folder was synced, too (fsync(2)).

SQLite sees to that for its own files; a key without which nothing opens, and a witness without which nothing starts,
need the same.

>>> import tempfile, os.path
>>> sync_folder_of(os.path.join(tempfile.mkdtemp(), "key"))
"""

import os


def sync_folder_of(path: str | os.PathLike[str]) -> None:
    """Wait until the folder's list of files is on disk; where folders cannot be opened, the system sees to it."""
    if os.name != "posix":
        return
    folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
