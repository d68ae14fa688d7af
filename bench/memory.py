"""The memory of a server over 100,000 asks: its ledger grows, its memory does not.

python -m bench memory
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.generator import load
from bench.service import Server, asking, started
from bench.table import Row

FEW, MANY = 10**4, 10**5
CLIENTS = 8
_DISK = Path("/dev/shm")  # what is measured is memory, and a disk would take half an hour of waiting


def rows() -> Iterator[Row]:
    disk = _DISK if _DISK.is_dir() else None
    with tempfile.TemporaryDirectory(dir=disk) as folder, started("service", folder) as service:
        yield from grown(service, folder, FEW, MANY)


def grown(service: Server, folder: str, few: int, many: int) -> Iterator[Row]:
    """The memory after many asks beside that after few."""
    files = asking(service, folder, CLIENTS)
    load(service.port, few, files)
    before = resident(service.process)
    load(service.port, many - few, files)
    after = resident(service.process)
    what = f"GB in memory after {many:,} served asks"
    yield Row(what, after / 2**30, before / 2**30, f"after {few:,}", at_most=1.1)


def resident(process: int) -> int:
    """How many bytes of a process are in memory."""
    return 4096 * int(Path(f"/proc/{process}/statm").read_text().split()[1])
