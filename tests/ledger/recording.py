"""A disk in memory that writes down every write and sync, so that the power can be cut at any of them.

What was synced is there after a cut; of what was not, none, all or some of it may be. A file that was deleted is gone
for good only if its folder was synced with that.
"""

import secrets

import apsw


class Disk(apsw.VFS):
    """A file layer for SQLite whose files are in memory and whose history is a list."""

    def __init__(self, name):
        super().__init__(name, "")
        self.vfs_name, self.files, self.log = name, {}, []

    def xAccess(self, pathname, flags):  # noqa: N802 - SQLite's names
        return pathname in self.files

    def xFullPathname(self, name):  # noqa: N802
        return name

    def xDelete(self, filename, syncdir):  # noqa: N802
        self.files.pop(filename, None)
        self.log.append(("delete", filename, syncdir))

    def xOpen(self, name, flags):  # noqa: N802
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self.files.setdefault(path, bytearray())
        return File(self, path)

    def note(self, *what):
        """Something that happened outside, between the writes."""
        self.log.append(("note", *what))


class File:
    """One file of it."""

    def __init__(self, disk, path):
        self.disk, self.path = disk, path

    @property
    def data(self):
        return self.disk.files.setdefault(self.path, bytearray())

    def xRead(self, amount, offset):  # noqa: N802
        return bytes(self.data[offset : offset + amount])

    def xWrite(self, data, offset):  # noqa: N802
        put(self.data, offset, data)
        self.disk.log.append(("write", self.path, offset, bytes(data)))

    def xTruncate(self, newsize):  # noqa: N802
        del self.data[newsize:]
        self.disk.log.append(("truncate", self.path, newsize))

    def xSync(self, flags):  # noqa: N802
        self.disk.log.append(("sync", self.path))

    def xFileSize(self):  # noqa: N802
        return len(self.data)

    def xLock(self, level): ...  # noqa: N802
    def xUnlock(self, level): ...  # noqa: N802
    def xClose(self): ...  # noqa: N802

    def xCheckReservedLock(self):  # noqa: N802
        return False

    def xFileControl(self, op, pointer):  # noqa: N802
        return False

    def xSectorSize(self):  # noqa: N802
        return 512

    def xDeviceCharacteristics(self):  # noqa: N802
        return 0


def put(data, offset, new):
    """Write, and fill what lies between with zeros."""
    if len(data) < offset:
        data.extend(bytes(offset - len(data)))
    data[offset : offset + len(new)] = new


def after_cut(log, survive):
    """The files after the power was cut at the end of this log; `survive()` tells of each unsynced deed."""
    synced = {}
    for number, (kind, *rest) in enumerate(log):
        if kind == "sync":
            synced[rest[0]] = number
    files = {}
    for number, (kind, *rest) in enumerate(log):
        if kind in ("note", "sync"):
            continue
        lasts = rest[1] if kind == "delete" else number <= synced.get(rest[0], -1)
        if not lasts and not survive():
            continue
        if kind == "delete":
            files.pop(rest[0], None)
        elif kind == "truncate":
            del files.setdefault(rest[0], bytearray())[rest[1] :]
        else:
            put(files.setdefault(rest[0], bytearray()), rest[1], rest[2])
    return files


SURVIVORS = {"none": lambda: False, "all": lambda: True, "some": lambda: secrets.randbelow(2) == 1}
