"""The log as JSON lines, without anything that was said: no keys, bodies, answers or texts of errors.

What is ours says its fields (`extra={"said": {...}}`). Of another library's line only where it comes from is written:
its words may quote what it was given. Of an error, its class and the lines of code that it came through.

>>> import logging
>>> record = logging.LogRecord("psycopg", logging.WARNING, "", 0, "password is 'secret'", (), None)
>>> "secret" in JsonLines().format(record)
False
"""

import json
import logging
import time
import traceback
from typing import Any

_PLAIN = ("uvicorn.error", "counterpoint.service.connections")
"""Loggers whose lines are about the process alone: started, stopped."""


class JsonLines(logging.Formatter):
    """One line of JSON for each record."""

    def format(self, record: logging.LogRecord) -> str:
        """The record's time, level and logger, what it says, and where an error came from."""
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        line: dict[str, Any] = {"at": when, "level": record.levelname.lower(), "logger": record.name}
        line |= getattr(record, "said", None) or {}
        if record.name in _PLAIN and record.exc_info is None:
            line["message"] = record.getMessage()
        if record.exc_info is not None and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])
            line["through"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-12:]]
        return json.dumps(line)


def configuration(level: str) -> dict[str, Any]:
    """What `logging.config` takes: every record of this level as a line on stderr."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": "counterpoint.service.operating.logs.JsonLines"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "root": {"level": level.upper(), "handlers": ["stderr"]},
    }
