"""The made-up rows of the group-bys, in a Parquet file that is written once and read by every library.

Row i of n has the unit i mod n/10, so that a unit has ten rows; the ten are in ten different groups.
"""

from pathlib import Path

from peers.tasks import KEYS, ROWS_PER_UNIT

FOLDER = Path(__file__).parent.parent / ".venv-peers" / "data"


def rows(size: int) -> str:
    """The path of the file of this size."""
    return str(FOLDER / f"rows-{size}.parquet")


def write_rows(size: int) -> None:
    """Write the file of this size, unless it is there."""
    if Path(rows(size)).exists():
        return
    import duckdb  # only where the files are written

    FOLDER.mkdir(parents=True, exist_ok=True)
    units = size // ROWS_PER_UNIT
    made_up = (
        f"SELECT i % {units} AS who, 'k' || ((i * 7 + i // {units} * 3) % {len(KEYS)}) AS key,"
        f" ((i * 7919 + i // 1000) % 1000)::BIGINT AS amount FROM range({size}) AS t(i)"
    )
    duckdb.sql(f"COPY ({made_up}) TO '{rows(size)}' (FORMAT parquet)")
