"""Kills migrations: one process for all of them, with a child for each.

`python -m tests.store_postgres.kill_migrations URL TOOK_SECONDS CHILDREN LEAST` prints the names of
the schemas that the children migrated, `killed_0` and so on, once all children have ended.
"""

from __future__ import annotations

import sys

from freehold.store.postgres.database import PostgresDatabase
from tests.kills import kill_in_the_middle


def main(url: str, took_seconds: str, children: str, least: str) -> None:
    killed = kill_in_the_middle(
        lambda number: PostgresDatabase(url, f"killed_{number}").migrate(),
        float(took_seconds),
        children=int(children),
        least=int(least),
    )
    for number in range(len(killed)):
        print(f"killed_{number}")


if __name__ == "__main__":
    main(*sys.argv[1:])
