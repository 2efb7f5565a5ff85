"""A PostgreSQL server with tenants: a schema each, and one set of connections for all.

The control schema gives its name to the others: `freehold` has `freehold_t_acme`. It also has
the function that looks at all of them in one statement.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from freehold.errors import BadName, Refused, TenantExists
from freehold.fork_safety import lock_of
from freehold.model.names import check_schema
from freehold.model.tenant import check_tenant
from freehold.store.movable_shard import MovableShard, cannot_move
from freehold.store.postgres import schema_copy
from freehold.store.postgres.connections import POOL_SIZE, Connections
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.postgres.shared_listener import listen_to_all
from freehold.store.shard import TenantActivity
from freehold.store.url import redacted

#: Of the connections that tenants' workers share, an event loop uses so many at a time.
_FEW = 4
_INFIX = "_t_"
_LEFT_INFIX = "_left_"


class PostgresShard:
    """Where tenants live: one database of a server."""

    def __init__(self, url: str, schema: str = "freehold", pool_size: int = POOL_SIZE) -> None:
        self.url = url
        self.schema = check_schema(schema)
        # Or two control schemas could give two tenants one name.
        if _INFIX in f"{schema}_" or _LEFT_INFIX in f"{schema}_":
            raise BadName(f"schema {schema!r} cannot have tenants: '{_INFIX}' is for theirs")
        self._connections = Connections(url, pool_size)
        self._control = PostgresDatabase(url, schema, connections=self._connections)
        self._tenants: dict[str, PostgresDatabase] = {}
        self._lock = lock_of(self)

    @property
    def shown(self) -> str:
        return redacted(self.url)

    def schema_of(self, tenant: str) -> str:
        """The only way from a tenant's name to SQL: both parts went through the whitelist."""
        return self._named(_INFIX, tenant)

    def _left(self, tenant: str) -> str:
        """What a tenant is called that has been locked up for its move."""
        return self._named(_LEFT_INFIX, tenant)

    def _named(self, infix: str, tenant: str) -> str:
        return check_schema(f"{self.schema}{infix}{check_tenant(tenant)}")

    def open(self, tenant: str) -> PostgresDatabase:
        schema = self.schema_of(tenant)
        with self._lock:
            if tenant not in self._tenants:
                self._tenants[tenant] = PostgresDatabase(
                    self.url,
                    schema,
                    connections=self._connections,
                    must_exist=True,
                    control=self.schema,
                )
            return self._tenants[tenant]

    def use_few(self) -> None:
        self._connections.use_few(_FEW)

    # -- coming and going --------------------------------------------------------------------

    def create(self, tenant: str) -> None:
        schema = self.schema_of(tenant)
        self._control.migrate()
        with self._connections.pool.connection(writes=True) as connection:
            ours = schema_copy.is_ours(connection, schema)
            if not ours and not schema_copy.is_empty(connection, schema):
                raise TenantExists(
                    f"{self.shown} has a schema {schema} already that is not Freehold's: "
                    "choose another name"
                )
            if schema_copy.is_used(connection, schema):
                raise TenantExists(f"{self.shown} has a tenant {tenant} already, with jobs")
            schema_copy.make(connection, schema)
        self.open(tenant).migrate()

    def drop(self, tenant: str) -> None:
        self._drop(self.schema_of(tenant))

    def _drop(self, schema: str) -> None:
        with self._connections.pool.connection(writes=True) as connection:
            if not schema_copy.exists(connection, schema):
                return
            if not schema_copy.is_ours(connection, schema):
                raise Refused(
                    f"schema {schema} of {self.shown} is not Freehold's: nothing was dropped"
                )
            schema_copy.drop(connection, schema)

    # -- watching ----------------------------------------------------------------------------

    async def awake(self, tenants: Sequence[str]) -> list[TenantActivity]:
        schemas = [self.schema_of(tenant) for tenant in tenants]
        pool = self._connections.pool_of_loop()
        async with pool.connection(writes=False) as connection:
            cursor = await connection.execute(
                f"select has_work, trouble from {self.schema}.awake(%s)".encode(), (schemas,)
            )
            rows = await cursor.fetchall()
        return [
            TenantActivity(tenant, has_work, trouble)
            for tenant, (has_work, trouble) in zip(tenants, rows, strict=True)
        ]

    async def listen(
        self, tenants: Callable[[], Sequence[str]], heard: Callable[[str, str | None], None]
    ) -> None:
        def channels() -> dict[str, str]:
            return {f"freehold_{self.schema_of(tenant)}": tenant for tenant in tenants()}

        await listen_to_all(
            self._connections.conninfo, f"freehold_{self.schema}_t", channels, heard
        )

    # -- moving ------------------------------------------------------------------------------

    def holds(self, tenant: str) -> bool:
        schema = self.schema_of(tenant)
        with self._connections.pool.connection(writes=False) as connection:
            return schema_copy.exists(connection, schema)

    @contextlib.contextmanager
    def alone(self, tenant: str) -> Iterator[bool]:
        schema = self.schema_of(tenant)
        with (
            self._connections.handler_pool.connection(writes=False) as connection,
            connection.transaction(),
        ):
            yield schema_copy.try_lock(connection, schema)

    def is_locked_up(self, tenant: str) -> bool:
        left = self._left(tenant)
        with self._connections.pool.connection(writes=False) as connection:
            return schema_copy.exists(connection, left)

    def lock_up(self, tenant: str) -> bool:
        schema, left = self.schema_of(tenant), self._left(tenant)
        with self._connections.pool.connection(writes=True) as connection:
            return schema_copy.retire(connection, schema, left)

    def let_out(self, tenant: str) -> None:
        schema, left = self.schema_of(tenant), self._left(tenant)
        with self._connections.pool.connection(writes=True) as connection:
            schema_copy.rename(connection, left, schema)

    def drop_locked_up(self, tenant: str) -> None:
        self._drop(self._left(tenant))

    def take_over(self, tenant: str, source: MovableShard) -> None:
        if not isinstance(source, PostgresShard):
            raise cannot_move(source, self)
        self._control.migrate()
        schema = self.schema_of(tenant)
        with self._connections.pool.connection(writes=True) as connection:
            if schema_copy.is_whole(connection, schema):
                return
            schema_copy.prepare(connection, schema)
        self.open(tenant).migrate()
        with (
            source._connections.pool.connection(writes=False) as reading,
            self._connections.pool.connection(writes=True) as writing,
        ):
            schema_copy.copy(reading, source._left(tenant), writing, schema)

    def close(self) -> None:
        self._connections.close()

    async def aclose(self) -> None:
        self._connections.close_here()
