"""Migrations that are killed: one process for all of them, a child of it for each.

`python -m tests.store_postgres.migrator URL` reads lines `SCHEMA SECONDS`: it kills the
migration of that schema so long after it began, and says whether it was done before.
"""

from __future__ import annotations

import os
import signal
import sys
import time

from leasehold.store.postgres.database import PostgresDatabase


def killed_after(url: str, schema: str, seconds: float) -> str:
    child = os.fork()
    if child == 0:
        PostgresDatabase(url, schema).migrate()
        os._exit(0)
    time.sleep(seconds)  # the moment of the kill, not a wait for something
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return "done" if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0 else "killed"


def main(url: str) -> None:
    for line in sys.stdin:
        schema, seconds = line.split()
        print(killed_after(url, schema, float(seconds)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
