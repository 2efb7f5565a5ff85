"""A PostgreSQL database with tenants: a schema each, and one set of connections for all.

The names of their schemas begin with that of the control schema: `freehold_t_acme`. The control
schema also has the function that checks all tenants in one statement.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from freehold.errors import BadName, Refused, TenantExists
from freehold.fork_safety import lock_of
from freehold.model.names import check_schema
from freehold.model.tenant import check_tenant
from freehold.store.database import ServerOptions, SessionOptions
from freehold.store.postgres import schema_copy
from freehold.store.postgres.connections import POOL_SIZE, Connections
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.postgres.shared_listener import listen_to_all
from freehold.store.shard import MovableShard, TenantActivity, already_has, cannot_move
from freehold.store.url import redacted

#: How many of the shared connections an event loop uses at a time: see `AsyncPool`.
_SOFT_LIMIT = 4
_INFIX = "_t_"
_RETIRED_INFIX = "_left_"
_DEFAULT_OPTIONS = SessionOptions()


class PostgresShard:
    """One database of a server."""

    def __init__(
        self,
        url: str,
        schema: str = "freehold",
        pool_size: int = POOL_SIZE,
        options: ServerOptions = _DEFAULT_OPTIONS,
    ) -> None:
        self.url = url
        self.schema = check_schema(schema)
        # Otherwise tenants of two control schemas could get the same schema.
        if _INFIX in f"{schema}_" or _RETIRED_INFIX in f"{schema}_":
            raise BadName(
                f"schema {schema!r} cannot have tenants: '{_INFIX}' is reserved for their schemas"
            )
        self._connections = Connections(url, pool_size, options)
        self._control = PostgresDatabase(url, schema, connections=self._connections)
        self._tenants: dict[str, PostgresDatabase] = {}
        self._lock = lock_of(self)

    @property
    def shown(self) -> str:
        return redacted(self.url)

    def schema_of(self, tenant: str) -> str:
        """All SQL gets a tenant's name from here: both parts are checked against a whitelist."""
        return self._named(_INFIX, tenant)

    def _retired_schema_of(self, tenant: str) -> str:
        return self._named(_RETIRED_INFIX, tenant)

    def _named(self, infix: str, tenant: str) -> str:
        return check_schema(f"{self.schema}{infix}{check_tenant(tenant)}")

    def open(self, tenant: str) -> PostgresDatabase:
        with self._lock:
            if tenant not in self._tenants:
                self._tenants[tenant] = PostgresDatabase(
                    self.url,
                    self.schema_of(tenant),
                    connections=self._connections,
                    must_exist=True,
                    control=self.schema,
                )
            return self._tenants[tenant]

    def share_connections(self) -> None:
        self._connections.set_soft_limit(_SOFT_LIMIT)

    # -- creating and dropping ---------------------------------------------------------------

    def create(self, tenant: str) -> None:
        schema = self.schema_of(tenant)
        self._control.migrate()
        with self._connections.pool.connection(writes=True) as connection:
            is_ours = schema_copy.is_ours(connection, schema)
            if not is_ours and not schema_copy.is_empty(connection, schema):
                raise TenantExists(
                    f"{self.shown} already has a schema {schema} that is not Freehold's: "
                    "choose another name"
                )
            if schema_copy.is_used(connection, schema):
                raise TenantExists(f"{self.shown} already has a tenant {tenant}, with jobs")
            schema_copy.create(connection, schema)
        self.open(tenant).migrate()

    def drop(self, tenant: str, *, only_if_empty: bool = False) -> bool:
        return self._drop(self.schema_of(tenant), only_if_empty=only_if_empty)

    def _drop(self, schema: str, *, only_if_empty: bool = False) -> bool:
        with self._connections.pool.connection(writes=True) as connection:
            if not schema_copy.exists(connection, schema):
                return True
            if not schema_copy.is_ours(connection, schema):
                raise Refused(
                    f"schema {schema} of {self.shown} is not Freehold's: nothing was dropped"
                )
            if only_if_empty:
                return schema_copy.drop_if_empty(connection, schema)
            schema_copy.drop(connection, schema)
            return True

    # -- activity ----------------------------------------------------------------------------

    async def tenants_with_work(self, tenants: Sequence[str]) -> list[TenantActivity]:
        schemas = [self.schema_of(tenant) for tenant in tenants]
        pool = self._connections.pool_of_loop()
        async with pool.connection(writes=False) as connection:
            cursor = await connection.execute(
                f"select has_work, error from {self.schema}.tenants_with_work(%s)".encode(),
                (schemas,),
            )
            rows = await cursor.fetchall()
        return [
            TenantActivity(tenant, has_work, error)
            for tenant, (has_work, error) in zip(tenants, rows, strict=True)
        ]

    async def listen(
        self,
        tenants: Callable[[], Sequence[str]],
        on_notification: Callable[[str, str | None], None],
    ) -> None:
        def channels() -> dict[str, str]:
            return {f"freehold_{self.schema_of(tenant)}": tenant for tenant in tenants()}

        await listen_to_all(
            self._connections.conninfo, f"freehold_{self.schema}_t", channels, on_notification
        )

    # -- moving ------------------------------------------------------------------------------

    def holds(self, tenant: str) -> bool:
        schema, retired = self.schema_of(tenant), self._retired_schema_of(tenant)
        with self._connections.pool.connection(writes=False) as connection:
            return schema_copy.exists(connection, schema) or schema_copy.exists(connection, retired)

    @contextlib.contextmanager
    def move_lock(self, tenant: str) -> Iterator[bool]:
        schema = self.schema_of(tenant)
        with (
            self._connections.handler_pool.connection(writes=False) as connection,
            connection.transaction(),
        ):
            yield schema_copy.try_lock(connection, schema)

    def is_retired(self, tenant: str) -> bool:
        retired = self._retired_schema_of(tenant)
        with self._connections.pool.connection(writes=False) as connection:
            return schema_copy.exists(connection, retired)

    def retire(self, tenant: str) -> bool:
        schema, retired = self.schema_of(tenant), self._retired_schema_of(tenant)
        with self._connections.pool.connection(writes=True) as connection:
            return schema_copy.retire(connection, schema, retired)

    def restore(self, tenant: str) -> None:
        schema, retired = self.schema_of(tenant), self._retired_schema_of(tenant)
        with self._connections.pool.connection(writes=True) as connection:
            schema_copy.rename(connection, retired, schema)

    def drop_retired(self, tenant: str) -> None:
        self._drop(self._retired_schema_of(tenant))

    def copy_from(self, tenant: str, source: MovableShard) -> None:
        if not isinstance(source, PostgresShard):
            raise cannot_move(source, self)
        self._control.migrate()
        schema, retired = self.schema_of(tenant), self._retired_schema_of(tenant)
        with (
            source._connections.pool.connection(writes=False) as reading,
            self._connections.pool.connection(writes=True) as writing,
            writing.transaction(),
        ):
            if schema_copy.exists(writing, retired):
                return
            if schema_copy.exists(writing, schema):
                raise already_has(self, tenant)
            # Functions contain the schema's name, so it is created under its own name. The same
            # transaction renames it: no other process ever sees that name.
            schema_copy.create(writing, schema)
            self.open(tenant).migrate_within(writing)
            schema_copy.copy(reading, source._retired_schema_of(tenant), writing, schema)
            schema_copy.rename(writing, schema, retired)

    def close(self) -> None:
        self._connections.close()

    async def aclose(self) -> None:
        self._connections.close_current_loop()
