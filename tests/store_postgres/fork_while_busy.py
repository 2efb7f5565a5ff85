"""A child forked while all connections of its parent are in use.

`python -m tests.store_postgres.fork_while_busy URL`: prints the exit status of the child.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings

from freehold.model.job import NewJob
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.store import Store

SIZE = 3
HANG_SECONDS = 120


def main(url: str) -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of just this
    database = PostgresDatabase(url, pool_size=SIZE)
    acquired, enough = threading.Barrier(SIZE + 1), threading.Event()

    def hold() -> None:
        with database._pool.connection(writes=False):
            acquired.wait()
            enough.wait()

    threads = [threading.Thread(target=hold) for _ in range(SIZE)]
    for thread in threads:
        thread.start()
    acquired.wait()
    status = forked(database)
    enough.set()
    for thread in threads:
        thread.join()
    Store(database.session()).enqueue([NewJob(task="parent")])
    database.close()
    print(status, flush=True)


def forked(database: PostgresDatabase) -> int:
    child = os.fork()
    if child == 0:
        signal.alarm(HANG_SECONDS)
        code = 1
        try:
            Store(database.session()).enqueue([NewJob(task="child")])
            code = 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


if __name__ == "__main__":
    main(*sys.argv[1:])
