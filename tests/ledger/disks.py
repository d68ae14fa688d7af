"""A disk that takes a part of what is written, says no, loses what it could not sync, or ends its process."""

import errno
import os
import signal


class Disk:
    """Stands between this process and the files whose paths begin with `path`; one fault at a time.

    `take(n)`: the next write takes n bytes and reports that number, as a full disk does. `refuse()`: it takes none and
    fails. `lose_sync()`: the next sync fails, and what was not on disk by then never will be, although it can be read.
    `die(n)`: the process ends once n bytes were written. `power_cut()` leaves in the files what was synced.
    """

    def __init__(self, monkeypatch, path):
        self._path = str(path)
        self._fault = None
        self._real = {name: getattr(os, name) for name in ("write", "fsync", "fdatasync")}
        self._on_disk, self._lost = {}, {}
        monkeypatch.setattr(os, "write", self._write)
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, lambda file, name=name: self._sync(file, name))

    def take(self, n):
        self._fault = ("take", n)

    def refuse(self):
        self._fault = ("refuse", 0)

    def lose_sync(self):
        self._fault = ("lose", 0)

    def die(self, n):
        self._fault = ("die", n)

    @property
    def met(self):
        """Whether the fault was met."""
        return self._fault is None

    def _is_watched(self, file):
        return os.readlink(f"/proc/self/fd/{file}").startswith(self._path) and not os.path.isdir(
            f"/proc/self/fd/{file}"
        )

    def _write(self, file, data):
        if not os.fstat(file).st_size:
            self._lost.pop(os.fstat(file).st_ino, None)
        if self._fault is None or self._fault[0] == "lose" or not self._is_watched(file):
            return self._real["write"](file, data)
        (kind, n), self._fault = self._fault, None
        if kind == "refuse":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self._real["write"](file, data[:n]) if n else 0
        if kind == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return written

    def _sync(self, file, name):
        if not self._is_watched(file):
            return self._real[name](file)
        found = os.fstat(file).st_ino
        if self._fault is not None and self._fault[0] == "lose":
            self._fault = None
            synced = len(self._on_disk.get(found, b""))
            self._lost.setdefault(found, []).append(slice(synced, os.fstat(file).st_size))
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._real[name](file)
        self._on_disk[found] = self._image(f"/proc/self/fd/{file}", found)
        return None

    def _image(self, path, inode):
        with open(path, "rb") as file:
            image = bytearray(file.read())
        for lost in self._lost.get(inode, ()):
            image[lost] = bytes(len(image[lost]))
        return bytes(image)

    def power_cut(self, *paths):
        """Leave in these files what is on disk."""
        for path in filter(os.path.exists, paths):
            with open(path, "r+b") as file:
                image = self._on_disk.get(os.fstat(file.fileno()).st_ino, b"")
                file.truncate(0)
                file.write(image)
