"""Data sets that other packages bring: their files are read, and the packages themselves are not imported.

>>> data_file("no_such_package", "data/rows.csv")
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: this data set comes with the package no_such_package, which is not installed: ...
"""

import atexit
import os
import shutil
import tempfile
import zipfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from counterpoint.errors import InvalidParameter
from counterpoint.sources.engines.embedded import silent_database


def data_file(package: str, name: str) -> Path:
    """The path of a file of an installed package, or an error that says what to install."""
    found = find_spec(package)
    if found is None or found.submodule_search_locations is None:
        raise InvalidParameter(
            f"this data set comes with the package {package}, which is not installed: pip install {package}, or "
            "pip install counterpoint[datasets] for all of them; people() needs nothing"
        )
    path = Path(found.submodule_search_locations[0], name)
    if not path.is_file():
        raise InvalidParameter(
            f"the installed package {package} has no file {name}: pip install --upgrade {package}, or use people()"
        )
    return path


@cache
def as_parquet(path: Path, select: str = "*") -> Path:
    """A CSV file, also one in a .zip of the same name, as a temporary Parquet file. NA is missing.

    The data is public, so types may be read off the values. The file is made once in a process, which removes it when
    it ends.
    """
    folder = Path(tempfile.mkdtemp(prefix="counterpoint-"))
    atexit.register(_remove, folder, os.getpid())
    made = folder / f"{path.name.partition('.')[0]}.parquet"
    with tempfile.TemporaryDirectory() as unpacked, silent_database() as database:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as packed:
                path = Path(packed.extract(path.stem, unpacked))
        database.read_csv(str(path), na_values="NA").project(select).write_parquet(str(made))
    return made


def _remove(folder: Path, process_id: int) -> None:
    """Remove a folder, unless this is a fork of the process that made it."""
    if os.getpid() == process_id:
        shutil.rmtree(folder, ignore_errors=True)
