"""Freehold: tasks, a store and settings in one object.

Names with an underscore are for the other parts of this package and may change at any time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

from freehold.apply_settings import HostSettings, StoreSettings
from freehold.client import Client, JobHandle, handle_of
from freehold.errors import BadInput, BadSettings, StoreDenied, StoreError, TenantNotFound
from freehold.exit_codes import EXIT_CRASHED
from freehold.extensions import CarriedVariable, Extension, default_extensions
from freehold.fork_safety import lock_of
from freehold.lifespan import Lifespan, opened
from freehold.model.job import NewJob
from freehold.model.plural import count
from freehold.model.schedule import ScheduleDefinition
from freehold.model.tenant import HOME_SHARD, check_tenant
from freehold.operator import AsyncOperator, Operator
from freehold.result_watcher import ResultWatcher
from freehold.schedules import Declarations, ScheduleDeclarer, Writer, calling_module
from freehold.settings import load
from freehold.simulated_kinds import register
from freehold.store.database import Database, Migration, check_migrated
from freehold.store.open import identity_of, missing_file, open_database, open_shard, scratch_store
from freehold.task_group import TaskGroup
from freehold.telemetry import log
from freehold.tenants.host import TenantHost
from freehold.tenants.host_registration import HostRegistration
from freehold.tenants.served_tenants import ServedTenants
from freehold.tenants.shards import Shards
from freehold.tenants.tenants import Tenants
from freehold.worker.config import WorkerSettings, check_worker_settings, worker_settings
from freehold.worker.event_loop import run_loop
from freehold.worker.worker import Worker, new_owner
from freehold.workflows import FlowMaker

TenantSelection: TypeAlias = Literal["all"] | Collection[str] | None


class Freehold(ScheduleDeclarer, FlowMaker):
    """A queue: the store of its jobs, and the tasks it knows.

    Without a URL the queue is embedded: a file ``freehold.db`` in the current folder, unless
    FREEHOLD_URL or DATABASE_URL is set. The store is opened at first use. The ``name`` keeps the
    schedules of this app apart from those of other apps in the same store; by default it is the
    name of the module that makes the app. The ``lifespan`` makes a context manager, asynchronous or
    not, that each worker process enters once; what it yields is ``ctx.deps`` of the handlers.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        schema: str | None = None,
        name: str | None = None,
        lifespan: Lifespan | None = None,
    ) -> None:
        super().__init__()
        self.tasks.lifespan = lifespan
        for extension in default_extensions:
            self.extend(extension)
        self._declarations = Declarations(calling_module(1) if name is None else name)
        self.url = load().store.url if url is None else url
        self.schema = load().store.schema if schema is None else schema
        #: The name of the tenant, in an app of one tenant.
        self._tenant_name: str | None = None
        self._opened_client: Client | None = None
        self._opened_tenants: Tenants | None = None
        self._tenant_apps: dict[str, Freehold] = {}
        self._lock = lock_of(self)

    # -- tasks -------------------------------------------------------------------------------

    def include(self, group: TaskGroup) -> None:
        """Add the tasks and schedules of a group, also those that it gets later. A group has one
        app."""
        group._attach(self)

    def _declare(self, definition: ScheduleDefinition) -> None:
        self._declarations.add(self._tenant_name, definition)

    def extend(self, extension: Extension) -> None:
        """Add an extension. Extensions run in the order of their registration, outermost first."""
        self.tasks.extensions.add(extension)

    def carry(self, variable: ContextVar[Any], name: str | None = None) -> None:
        """Carry a context variable from each enqueue to the handler, in the job's metadata, where
        it has this name, by default that of the variable. None is not carried."""
        self.extend(CarriedVariable(variable, name))

    @contextlib.contextmanager
    def override(self, dependency: Callable[..., Any], by: Callable[..., Any]) -> Iterator[None]:
        """Within the block, ``by`` takes the place of a dependency in all handlers that run in this
        process. It may have dependencies of its own."""
        overrides = self.tasks.overrides
        before = overrides.get(dependency)
        overrides[dependency] = by
        try:
            yield
        finally:
            if before is None:
                del overrides[dependency]
            else:
                overrides[dependency] = before

    # -- enqueueing --------------------------------------------------------------------------

    def _submit(self, job: NewJob, connection: Any = None, tenant: str | None = None) -> JobHandle:
        app = self if tenant is None else self.tenant(tenant)
        return app._client.enqueue([job], connection)[0]

    async def _asubmit(
        self, job: NewJob, connection: Any = None, tenant: str | None = None
    ) -> JobHandle:
        app = self if tenant is None else self.tenant(tenant)
        return (await app._client.aenqueue([job], connection))[0]

    def enqueue_many(self, jobs: Iterable[NewJob], *, connection: Any = None) -> list[JobHandle]:
        """Store many prepared jobs in few statements. Returns their handles in the same order."""
        return self._client.enqueue(_prepared(jobs), connection)

    async def aenqueue_many(
        self, jobs: Iterable[NewJob], *, connection: Any = None
    ) -> list[JobHandle]:
        """The same for asyncio."""
        return await self._client.aenqueue(_prepared(jobs), connection)

    def job(self, job_id: int) -> JobHandle[Any]:
        """The handle of a stored job. Raises JobNotFound."""
        return handle_of(self._client, job_id, self._client.store.read([job_id]))

    async def ajob(self, job_id: int) -> JobHandle[Any]:
        """The same for asyncio."""
        return handle_of(self._client, job_id, await self._client.awaited.read([job_id]))

    # -- working -----------------------------------------------------------------------------

    def run_worker(
        self,
        *,
        tenants: TenantSelection = None,
        without_tenants: Collection[str] = (),
        **settings: Any,
    ) -> int:
        """Run jobs until SIGTERM or SIGINT. Returns the exit code. ``settings``: WorkerSettings.

        With ``tenants``: the jobs of the named tenants, or of ``"all"`` but ``without_tenants``.
        """
        if settings.get("until_idle") and tenants is None:
            check_migrated(self._database)  # a worker waits for the migration without end
        return run_loop(self._run_worker_and_close(tenants, without_tenants, settings))

    async def _run_worker_and_close(
        self, tenants: TenantSelection, without: Collection[str], settings: dict[str, Any]
    ) -> int:
        """The event loop ends with the worker, so its connections are closed here."""
        try:
            return await self.arun_worker(tenants=tenants, without_tenants=without, **settings)
        finally:
            await self._database.aclose()

    async def arun_worker(
        self,
        *,
        tenants: TenantSelection = None,
        without_tenants: Collection[str] = (),
        stop: asyncio.Event | None = None,
        **settings: Any,
    ) -> int:
        """The same inside a running event loop. It drains also when ``stop`` is set."""
        self._check_selection(tenants, without_tenants)
        configured = load()
        register(self, configured.kinds.values())
        chosen = worker_settings(configured, **settings)
        if tenants is None:
            if chosen.managed_in is None:  # else the manager has checked it
                await self._check_rights()
            own_rules = StoreSettings(configured, self.aoperator, self._tenant_name)
            writers: list[Writer] = [own_rules.apply, self._declare_schedules]
            async with self._declarations.written(writers), self._prepared_worker(chosen):
                prepare = own_rules.before_claims
                worker = Worker(
                    self._database, self.tasks, chosen, tenant=self._tenant_name, prepare=prepare
                )
                return await _run_until(stop, worker)
        served = self.tenants.served(None if tenants == "all" else tenants, without_tenants)
        own = HostRegistration(served.control, new_owner(), chosen.managed_in, chosen.slot_file)
        rules = HostSettings(configured, self.aoperator, lambda name: self.tenant(name).aoperator)
        writers = [served.check, rules.apply_to_all, partial(self._declare_for_tenants, served)]
        async with self._declarations.written(writers), self._prepared_worker(chosen):
            host = TenantHost(served, self.tasks, chosen, registration=own, prepare=rules.apply_to)
            return await _run_until(stop, host)

    @contextlib.asynccontextmanager
    async def _prepared_worker(self, settings: WorkerSettings) -> AsyncIterator[None]:
        async with self.tasks.extensions.around_worker(settings), opened(self.tasks.lifespan):
            yield

    @contextlib.asynccontextmanager
    async def running(
        self, *, worker: bool = False, shutdown_grace_seconds: float = 10.0, **settings: Any
    ) -> AsyncIterator[None]:
        """For the lifespan of a web application: closes the connections at its end.

        With ``worker`` the jobs run on the same event loop meanwhile, as in development and in
        small programs; other arguments are those of `run_worker`. Signals are left to the server.
        At the end running jobs have so many seconds, and then return to the queue."""
        stop = asyncio.Event()
        running: asyncio.Task[int] | None = None
        if worker:
            settings = {"shutdown_grace_seconds": shutdown_grace_seconds, **settings}
            check_worker_settings(settings)  # here, where the program cannot miss it
            work = self.arun_worker(stop=stop, handle_signals=False, **settings)
            running = asyncio.create_task(work, name="worker")
            running.add_done_callback(_log_crash)
        try:
            yield
        finally:
            stop.set()
            if running is not None:
                await asyncio.wait({running})
            await self.aclose()

    async def _declare_schedules(self) -> None:
        declared = self._declarations.of(self._tenant_name)
        changed = await self._client.awaited.declare_schedules(self._declarations.app, declared)
        if changed:
            log.info("schedules changed by their declarations: %s", ", ".join(changed))

    async def _declare_for_tenants(self, served: ServedTenants) -> None:
        """Raises StoreError at the end if a store was not reached: then all are tried again."""
        names = {each.name for each in await served.tenants()} & self._declarations.tenants
        failure: StoreError | None = None
        for name in sorted(names):
            try:
                await self.tenant(name)._declare_schedules()
            except StoreError as error:
                failure = error
            except (BadSettings, TenantNotFound) as error:  # as of a shard that is not known here
                log.error("the schedules of tenant %s are not written here: %s", name, error)
        if failure is not None:
            raise failure

    def _check_selection(self, tenants: TenantSelection, without: Collection[str]) -> None:
        if tenants is not None and self._tenant_name is not None:
            raise BadInput("give --tenants or --tenant (tenants= or app.tenant), not both")
        if without and tenants != "all":
            raise BadInput(
                "--without-tenant (without_tenants=) is for --tenants all: give that, too"
            )

    async def _check_rights(self) -> None:
        """Raises StoreDenied, after which a worker would try again without end. Other errors pass
        by themselves or by an action elsewhere."""
        try:
            await self._client.awaited.make_ready(0)
        except StoreDenied:
            raise
        except StoreError as error:
            log.debug("the rights could not be checked: %s", error)

    # -- tenants -----------------------------------------------------------------------------

    def tenant(self, name: str) -> Freehold:
        """The same app with the jobs of this tenant only."""
        with self._lock:
            if name not in self._tenant_apps:
                self._tenant_apps[name] = _TenantApp(self, check_tenant(name))
            return self._tenant_apps[name]

    @property
    def tenants(self) -> Tenants:
        """The tenants: list, create, pause, move and drop them."""
        with self._lock:
            if self._opened_tenants is None:
                settings = load()
                shards = Shards(
                    {**settings.shards, HOME_SHARD: self.url},
                    lambda url: open_shard(url, self.schema, settings.store),
                )
                self._opened_tenants = Tenants(self._database, shards)
            return self._opened_tenants

    # -- the store ---------------------------------------------------------------------------

    @property
    def operator(self) -> Operator:
        """Everything an operator can read and do: list, explain, cancel, pause, retry, ..."""
        return Operator(self._client.store, check=self.tasks.check_args, tenant=self._tenant_name)

    @property
    def aoperator(self) -> AsyncOperator:
        """The same for asyncio."""
        check, tenant = self.tasks.check_args, self._tenant_name
        return AsyncOperator(self._client.awaited, check=check, tenant=tenant)

    def migrate(self) -> list[Migration]:
        """Bring the store's schema up to date."""
        return self._database.migrate()

    @property
    def _client(self) -> Client:
        if (opened := self._opened_client) is not None:
            return opened
        with self._lock:
            if self._opened_client is None:
                self._opened_client = Client(self._open(), tasks=self.tasks)
            return self._opened_client

    @property
    def _store_identity(self) -> str:
        """The same text for every process that uses this store or tenant, whatever its shard."""
        store = identity_of(self.url, self.schema)
        return store if self._tenant_name is None else f"{store} tenant {self._tenant_name}"

    def _open(self) -> Database:
        return open_database(self.url, self.schema, load().store)

    @property
    def _database(self) -> Database:
        return self._client.database

    def _swap_client(self, client: Client | None) -> Client | None:
        """Put another store behind the app. Returns the client before. For `freehold.testing`."""
        with self._lock:
            before, self._opened_client = self._opened_client, client
        return before

    @property
    def _missing_file(self) -> Path | None:
        """The file that the first use would create; None if the store exists or is a server."""
        return None if self._opened_client is not None else missing_file(self.url)

    @contextlib.contextmanager
    def _scratch_app(self) -> Iterator[Freehold]:
        """An app on an empty store beside this one, which is dropped afterwards."""
        with (
            scratch_store(self.url) as (url, schema),
            contextlib.closing(Freehold(url, schema=schema)) as app,
        ):
            app.migrate()
            yield app

    def close(self) -> None:
        """Close the connections. The app can be used again afterwards."""
        client, tenants, watchers = self._detach()
        for watcher in watchers:
            watcher.close()
        if tenants is not None:
            tenants.shards.close()
        if client is not None:
            client.database.close()

    async def aclose(self) -> None:
        client, tenants, watchers = self._detach()
        for watcher in watchers:
            await asyncio.to_thread(watcher.close)
        if tenants is not None:
            await tenants.shards.aclose()
            tenants.shards.close()
        if client is not None:
            await client.database.aclose()
            client.database.close()

    def _detach(self) -> tuple[Client | None, Tenants | None, list[ResultWatcher]]:
        with self._lock:
            clients = [app._opened_client for app in (self, *self._tenant_apps.values())]
            client, self._opened_client = self._opened_client, None
            tenants, self._opened_tenants = self._opened_tenants, None
            self._tenant_apps.clear()
        return client, tenants, [each.results for each in clients if each is not None]

    def __repr__(self) -> str:
        return f"<Freehold with {count(len(self.tasks.names), 'task')}>"


class _TenantApp(Freehold):
    """An app on the store of one tenant, with the tasks and the connections of the whole app."""

    def __init__(self, app: Freehold, name: str) -> None:
        super().__init__(app.url, schema=app.schema, name=app._declarations.app)
        self.tasks = app.tasks
        self._declarations = app._declarations
        self._app = app
        self._tenant_name = self._name = name

    def _open(self) -> Database:
        return self._app.tenants.open(self._name)

    def tenant(self, name: str) -> Freehold:
        return self._app.tenant(name)

    @property
    def tenants(self) -> Tenants:
        return self._app.tenants

    def close(self) -> None:
        self._app.close()

    async def aclose(self) -> None:
        await self._app.aclose()

    def __repr__(self) -> str:
        tasks = count(len(self.tasks.names), "task")
        return f"<Freehold of tenant {self._name} with {tasks}>"


async def _run_until(stop: asyncio.Event | None, worker: Worker | TenantHost) -> int:
    if stop is None:
        return await worker.run()

    async def drain_on_stop(stop: asyncio.Event) -> None:
        await stop.wait()
        worker.drain()

    waiting = asyncio.create_task(drain_on_stop(stop))
    try:
        return await worker.run()
    finally:
        waiting.cancel()


def _log_crash(worker: asyncio.Task[int]) -> None:
    """The program goes on without its worker."""
    if worker.cancelled():
        return
    if (error := worker.exception()) is not None:
        log.error("the worker of this program has ended with an error", exc_info=error)
    elif worker.result() == EXIT_CRASHED:
        log.error("the worker of this program has crashed: its jobs wait for another one")


def _prepared(jobs: Iterable[NewJob]) -> list[NewJob]:
    new = list(jobs)
    for job in new:
        if not isinstance(job, NewJob):
            raise BadInput(
                f"enqueue_many got a {type(job).__name__}, not a prepared job: give "
                "task.prepare(...), which stores nothing, instead of task.enqueue(...)"
            )
    return new
