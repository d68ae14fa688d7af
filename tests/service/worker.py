"""A worker of the service that tests kill: it serves the table of `registry.py` on a socket that its parent holds."""

import socket
import sys

import uvicorn
from tests.service.registry import table

import counterpoint as cp
from counterpoint.service.app import application
from counterpoint.service.limits import Limits
from counterpoint.service.registry import Registry

GENEROUS = Limits(per_second=10**6, burst=10**6, refusal=0, at_once=10**4)
"""So generous that faults are all that is tested."""


def people(place):
    """The registry of one data set, in an SQLite ledger."""
    registry = Registry(cp.Durable(place))
    registry.register("people", table, cp.Filter(cp.PureDP(4)))
    return registry


if __name__ == "__main__":
    listening = socket.socket(fileno=int(sys.argv[2]))
    config = uvicorn.Config(application(people(sys.argv[1]), GENEROUS), log_level="error", access_log=False)
    uvicorn.Server(config).run(sockets=[listening])
