"""The sessions of `session` on libpq itself: see `pipeline` for what that saves."""

from __future__ import annotations

from freehold.store.postgres.pipeline import Exchange, Pipeline, PreparedStatement
from freehold.store.postgres.pooled_connection import AsyncPooledConnection, PooledConnection
from freehold.store.postgres.session import AsyncPostgresSession, PostgresSession, Statements
from freehold.store.statements import Rows, StatementGroup

#: New rows block no other transaction: the server inserts some while the next are encoded.
_INSERTS = "enqueue"


class PipelinedSession(PostgresSession):
    """Blocking."""

    def _execute_on(self, connection: PooledConnection, group: StatementGroup) -> list[Rows]:
        if group.is_trial:  # rare, and rolled back
            return super()._execute_on(connection, group)
        return connection.wait(_exchange(connection.group_pipeline, group, self._statements))


class AsyncPipelinedSession(AsyncPostgresSession):
    """For asyncio."""

    async def _execute_on(
        self, connection: AsyncPooledConnection, group: StatementGroup
    ) -> list[Rows]:
        if group.is_trial:
            return await super()._execute_on(connection, group)
        exchange = _exchange(connection.group_pipeline, group, self._statements)
        return await connection.run_exchange(exchange)


def _exchange(pipeline: Pipeline, group: StatementGroup, statements: Statements) -> Exchange:
    if len(group.statements) == 1 and group.notification is None:
        return pipeline.exchange_one(*statements.prepare(group.statements[0]))
    prepared = [PreparedStatement(*statements.prepare_lazily(each)) for each in group.statements]
    then = group.notification
    return pipeline.exchange(
        prepared,
        then=None if then is None else PreparedStatement(*statements.prepare_lazily(then)),
        streams=all(each.name.startswith(_INSERTS) for each in group.statements),
    )
