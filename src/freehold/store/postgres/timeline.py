"""The check that comes before the first number that is drawn on a connection.

A standby that is promoted without the latest commits would give ids and tokens again. The check
compares the server's timeline with that of the sequences, and moves them on if it is another. A
connection dies with its server, so that one check is enough for all of its life.

Behind a pooler this is not so: its clients stay connected while the server changes. A pooler sends
a process id of its own to each client. Where that is not the id of the server's process, every
write is checked, in its own transaction and so on the server that executes it.
"""

from __future__ import annotations

import msgspec

from freehold.store.postgres.async_pool import AsyncPooledConnection
from freehold.store.postgres.pool import PooledConnection
from freehold.store.statements import Rows, Statement, StatementGroup

CHECK = "check_timeline"
_STATEMENT = Statement(CHECK, {})


def check_sql(schema: str) -> bytes:
    return f"select {schema}.check_timeline()".encode()


def with_check(group: StatementGroup) -> StatementGroup:
    return msgspec.structs.replace(group, statements=(_STATEMENT, *group.statements))


def without_check(
    connection: PooledConnection | AsyncPooledConnection, schema: str, results: list[Rows]
) -> list[Rows]:
    """The results of the group itself; those of the check are noted."""
    ((server_process,),) = results[0]
    if server_process == connection.pgconn.backend_pid:
        connection.checked_schemas.add(schema)
    return results[1:]
