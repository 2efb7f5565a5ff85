"""Freehold: tasks, a store and settings in one object."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from freehold.apply_settings import apply_settings, apply_to_all_tenants, apply_to_tenant
from freehold.client import Client, JobHandle
from freehold.errors import BadSettings
from freehold.fork_safety import lock_of
from freehold.model.job import DEFAULT_QUEUE, NewJob
from freehold.model.names import check_name
from freehold.model.policy import LaneOnFailure, OnDrain, OnLeaseExpired, OnStop, Policy
from freehold.model.retry import DEFAULT_RETRY, Retry
from freehold.model.tenant import HOME_SHARD, check_tenant
from freehold.operator import AsyncOperator, Operator
from freehold.settings import load, resolve_schema, resolve_url
from freehold.signature import Signature
from freehold.simulated_kinds import register
from freehold.store.database import Database, Migration
from freehold.store.open import missing_file, open_database, open_shard, scratch_store
from freehold.store.schema_version import check_migrated
from freehold.tasks import Options, Registry, Task, TaskDefinition, default_name, tags_of
from freehold.tenants.host import TenantHost
from freehold.tenants.shards import Shards
from freehold.tenants.tenants import Tenants
from freehold.worker.config import worker_settings
from freehold.worker.event_loop import run_loop
from freehold.worker.execution.context import Context
from freehold.worker.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")
Isolation = Literal["auto", "process"]
TenantSelection: TypeAlias = Literal["all"] | Collection[str] | None


class TaskDecorator(Protocol):
    """Makes a function a task. A first parameter ``ctx: Context`` is no part of its calls."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], R], /
    ) -> Task[P, R, JobHandle]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R, JobHandle]: ...


class Freehold:
    """A queue: where its jobs live, and which tasks it knows.

    Without a URL it is embedded: a file ``freehold.db`` in the current folder, unless
    FREEHOLD_URL or DATABASE_URL says otherwise. The store is opened at first use.
    """

    def __init__(self, url: str | None = None, *, schema: str | None = None) -> None:
        self.url = resolve_url(url)
        self.schema = resolve_schema(schema)
        self.tasks = Registry()
        #: Whose jobs these are, if they are a tenant's.
        self.of_tenant: str | None = None
        self._client: Client | None = None
        self._tenancy: Tenants | None = None
        self._bound: dict[str, Freehold] = {}
        self._lock = lock_of(self)

    # -- tasks -------------------------------------------------------------------------------

    @overload
    def task(self, function: Callable[Concatenate[Context, P], R], /) -> Task[P, R, JobHandle]: ...

    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R, JobHandle]: ...

    @overload
    def task(
        self,
        /,
        *,
        name: str | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = 0,
        retry: Retry = DEFAULT_RETRY,
        timeout: float | None = None,
        tags: tuple[str, ...] = (),
        isolation: Isolation = "auto",
        on_lease_expired: OnLeaseExpired = "retry",
        on_cancel: OnStop = "auto",
        on_drain: OnDrain = "auto",
        lane_on_failure: LaneOnFailure = "block",
    ) -> TaskDecorator: ...

    def task(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        queue: str = DEFAULT_QUEUE,
        priority: int = 0,
        retry: Retry = DEFAULT_RETRY,
        timeout: float | None = None,
        tags: tuple[str, ...] = (),
        isolation: Isolation = "auto",
        on_lease_expired: OnLeaseExpired = "retry",
        on_cancel: OnStop = "auto",
        on_drain: OnDrain = "auto",
        lane_on_failure: LaneOnFailure = "block",
    ) -> Task[Any, Any, JobHandle] | TaskDecorator:
        """Make a function a task: ``@app.task`` or ``@app.task(queue="mail", ...)``."""
        options = Options(queue=queue, priority=priority, timeout=timeout, tags=tags_of(tags))
        policy = Policy(
            retry=retry,
            on_lease_expired=on_lease_expired,
            on_cancel=on_cancel,
            on_drain=on_drain,
            lane_on_failure=lane_on_failure,
        )
        if isolation not in ("auto", "process"):
            raise BadSettings(f"isolation={isolation!r}: choose auto or process")

        def define(function: Callable[..., Any]) -> Task[Any, Any, JobHandle]:
            called = default_name(function) if name is None else check_name("task", name)
            signature = Signature(called, function)
            definition = TaskDefinition(called, function, signature, policy, isolation)
            task = Task(self, definition, function, options)
            self.tasks.add(task)
            return task

        return define if function is None else define(function)

    # -- enqueueing --------------------------------------------------------------------------

    def submit(self, job: NewJob, connection: Any = None) -> JobHandle:
        client = self.client
        return JobHandle(client, job.task, client.enqueue([job], connection)[0])

    async def asubmit(self, job: NewJob, connection: Any = None) -> JobHandle:
        client = self.client
        return JobHandle(client, job.task, (await client.aenqueue([job], connection))[0])

    def enqueue_many(self, jobs: Iterable[NewJob], *, connection: Any = None) -> list[JobHandle]:
        """Many prepared jobs in few statements; answers in the same order."""
        client, many = self.client, list(jobs)
        answers = client.enqueue(many, connection)
        return [JobHandle(client, j.task, a) for j, a in zip(many, answers, strict=True)]

    async def aenqueue_many(
        self, jobs: Iterable[NewJob], *, connection: Any = None
    ) -> list[JobHandle]:
        """The same for asyncio."""
        client, many = self.client, list(jobs)
        answers = await client.aenqueue(many, connection)
        return [JobHandle(client, j.task, a) for j, a in zip(many, answers, strict=True)]

    # -- working -----------------------------------------------------------------------------

    def run_worker(self, *, tenants: TenantSelection = None, **settings: Any) -> int:
        """Run jobs until SIGTERM or SIGINT; answers the exit code. See WorkerSettings.

        With ``tenants``, those of the tenants that are named, or of ``"all"``.
        """
        if settings.get("until_idle") and tenants is None:
            check_migrated(self.database)  # or it would wait for that for ever
        return run_loop(self._run_worker_and_close(tenants, settings))

    async def _run_worker_and_close(
        self, tenants: TenantSelection, settings: dict[str, Any]
    ) -> int:
        """The loop ends with the worker, and so must the connections that belong to it."""
        try:
            return await self.arun_worker(tenants=tenants, **settings)
        finally:
            await self.database.aclose()

    async def arun_worker(self, *, tenants: TenantSelection = None, **settings: Any) -> int:
        """The same inside a running event loop."""
        configured = load()
        register(self, configured.kinds.values())
        chosen = worker_settings(configured, **settings)
        if tenants is None:
            tell = apply_settings if self.of_tenant is None else apply_to_tenant
            await tell(self.aoperate, configured)
            return await Worker(self.database, self.tasks, chosen, tenant=self.of_tenant).run()
        served = self.tenants.served(None if tenants == "all" else tenants)
        await served.check()
        await apply_to_all_tenants(self.aoperate, configured)
        return await TenantHost(served, self.tasks, chosen).run()

    # -- tenants -----------------------------------------------------------------------------

    def tenant(self, name: str) -> Freehold:
        """The same app, with the jobs of this tenant and of nobody else."""
        with self._lock:
            if name not in self._bound:
                self._bound[name] = _TenantApp(self, check_tenant(name))
            return self._bound[name]

    @property
    def tenants(self) -> Tenants:
        """Which tenants there are, where they live, and what can be done with them."""
        with self._lock:
            if self._tenancy is None:
                urls = {name: place.value for name, place in load().places.items()}
                places = Shards(
                    {**urls, HOME_SHARD: self.url}, lambda url: open_shard(url, self.schema)
                )
                self._tenancy = Tenants(self.database, places)
            return self._tenancy

    # -- the store ---------------------------------------------------------------------------

    @property
    def client(self) -> Client:
        if (known := self._client) is not None:
            return known
        with self._lock:
            if self._client is None:
                self._client = Client(open_database(self.url, self.schema))
            return self._client

    def swap_client(self, client: Client | None) -> Client | None:
        """Put another store behind the app; answers what was there. For `freehold.testing`."""
        with self._lock:
            before, self._client = self._client, client
        return before

    @property
    def database(self) -> Database:
        return self.client.database

    @property
    def operate(self) -> Operator:
        """What an operator can ask and do."""
        return Operator(self.client.store)

    @property
    def aoperate(self) -> AsyncOperator:
        """The same for asyncio."""
        return AsyncOperator(self.client.awaited)

    @property
    def missing_file(self) -> Path | None:
        """The file that the first use makes; None: there is a store, or at least a server."""
        return None if self._client is not None else missing_file(self.url)

    def migrate(self) -> list[Migration]:
        """Bring the store's schema up to date."""
        return self.database.migrate()

    @contextlib.contextmanager
    def aside(self) -> Iterator[Freehold]:
        """An app on an empty store beside this one, which is gone afterwards: to try things."""
        with (
            scratch_store(self.url) as (url, schema),
            contextlib.closing(Freehold(url, schema=schema)) as app,
        ):
            app.migrate()
            yield app

    def close(self) -> None:
        """Give the connections back. The app can be used again afterwards."""
        client, tenancy = self._let_go()
        if tenancy is not None:
            tenancy.places.close()
        if client is not None:
            client.database.close()

    async def aclose(self) -> None:
        client, tenancy = self._let_go()
        if tenancy is not None:
            await tenancy.places.aclose()
            tenancy.places.close()
        if client is not None:
            await client.database.aclose()
            client.database.close()

    def _let_go(self) -> tuple[Client | None, Tenants | None]:
        with self._lock:
            client, self._client = self._client, None
            tenancy, self._tenancy = self._tenancy, None
            self._bound.clear()
        return client, tenancy

    def __repr__(self) -> str:
        return f"<Freehold with {len(self.tasks.names)} tasks>"


class _TenantApp(Freehold):
    """An app whose store is a tenant's. Its tasks are those of the app."""

    def __init__(self, app: Freehold, name: str) -> None:
        super().__init__(app.url, schema=app.schema)
        self.tasks = app.tasks
        self._app = app
        self.of_tenant = self._name = name

    @property
    def client(self) -> Client:
        if (known := self._client) is not None:
            return known
        with self._lock:
            if self._client is None:
                self._client = Client(self._app.tenants.open(self._name))
            return self._client

    def tenant(self, name: str) -> Freehold:
        return self._app.tenant(name)

    @property
    def tenants(self) -> Tenants:
        return self._app.tenants

    def close(self) -> None:
        """What it uses is the app's."""
        self._app.close()

    async def aclose(self) -> None:
        await self._app.aclose()

    def __repr__(self) -> str:
        return f"<Freehold of tenant {self._name} with {len(self.tasks.names)} tasks>"
