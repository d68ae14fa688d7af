"""`counterpoint serve` and `counterpoint witness` as processes of their own, called over HTTP."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

import httpx

import counterpoint

SOURCES = str(pathlib.Path(counterpoint.__file__).resolve().parents[1])


class Served:
    """A running service; `lines` is what it printed, `key` the custodian's, if this was the first start."""

    COMMAND = "serve"

    def __init__(self, folder, *words, **environment):
        self.folder = folder
        command = [sys.executable, "-m", "counterpoint", self.COMMAND, "--port", "0", *map(str, words)]
        self.errors = open(folder / "errors.log", "a+b")  # noqa: SIM115 - closed when the service is stopped
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": SOURCES, **environment},
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )
        self.lines = []
        self.url, self.key = None, None
        watchdog = threading.Timer(300, self.process.kill)  # a service that never starts ends the test
        watchdog.start()
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if found := re.search(r" at (https?://\S+)", line):
                self.url = found[1]
            if found := re.search(r"(cp_\S+)", line):
                self.key = found[1]
            if "Ctrl-C" in line:
                break
        watchdog.cancel()

    def client(self, key=None, **options):
        return httpx.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {key or self.key}"}, timeout=300, **options
        )

    @property
    def log(self):
        self.errors.seek(0)
        return self.errors.read().decode()

    def stop(self, number=signal.SIGTERM):
        """Stop it as an operator does; its exit status."""
        self.process.send_signal(number)
        status = self.process.wait(120)
        self.process.stdout.close()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()
        self.process.stdout.close()
        self.errors.close()


class ServedWitness(Served):
    """A running witness; `key` is that of its first owner."""

    COMMAND = "witness"
