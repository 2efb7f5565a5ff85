"""Enqueueing: jobs into the store, at once or inside the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeAlias

import msgspec

from freehold.clock import monotonic
from freehold.errors import JobNotFound
from freehold.extensions import Extensions
from freehold.model.job import Enqueued, Job, JobEnd, NewJob
from freehold.model.operator_actions import ActionResult, OperatorVerb
from freehold.model.timestamps import StoredTime, maybe_time
from freehold.operator import act
from freehold.result_watcher import ResultWatcher
from freehold.results import check_may_wait, seconds_of_wait, too_late, value_of
from freehold.store.database import Database
from freehold.store.notifications import NotifyLimiter
from freehold.store.statements import Verb, arun, run
from freehold.store.store import AsyncStore, Store
from freehold.store.verbs.enqueue import enqueue
from freehold.tasks import Registry

if TYPE_CHECKING:
    # The default is for type checkers: `JobHandle` alone is a `JobHandle[Any]`.
    from typing_extensions import TypeVar

    R_co = TypeVar("R_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    R_co = TypeVar("R_co", covariant=True)

CLIENT = "client"
#: What a verb found that stores jobs of a flow, and their ids in the order of the jobs.
Members: TypeAlias = tuple[Any, list[int]]


class Client:
    """Stores jobs in one database."""

    def __init__(
        self,
        database: Database,
        now: Callable[[], float] = monotonic,
        tasks: Registry | None = None,
    ) -> None:
        """``tasks``: those whose return types are known."""
        self.database = database
        self.tasks = tasks
        self._extensions = Extensions() if tasks is None else tasks.extensions
        self.results = ResultWatcher(database)
        self.store = Store(database.session())
        self.awaited = AsyncStore(database.async_session())
        self._notify_limiter = NotifyLimiter(now)

    def wait(self, job_id: int, seconds: float | None) -> JobEnd | None:
        """How the job has ended; None: there is no such job. Raises TimeoutError."""
        return self.results.wait(job_id, seconds)

    async def wait_async(self, job_id: int, seconds: float | None) -> JobEnd | None:
        """The same for asyncio."""
        return await self.results.wait_async(job_id, seconds)

    def enqueue(self, jobs: Sequence[NewJob], connection: Any = None) -> list[JobHandle]:
        """Store jobs. Returns their handles in the same order. With the caller's ``connection``
        they exist once its transaction commits."""
        extensions = self._extensions
        if extensions.see_enqueues:
            jobs = extensions.run_blocking(extensions.before_enqueue(jobs))
        try:
            if connection is None:
                stored = run(enqueue(jobs, self._notify_limiter), self.store.session)
            else:
                stored = run(enqueue(jobs), self.database.caller_session(connection))
        except BaseException as error:
            if extensions.see_enqueues:
                extensions.run_blocking(extensions.after_failure(list(jobs), error))
            raise
        handles = self._handles(jobs, stored)
        if extensions.see_enqueues:
            extensions.run_blocking(extensions.after_enqueue(list(jobs), handles))
        return handles

    async def aenqueue(self, jobs: Sequence[NewJob], connection: Any = None) -> list[JobHandle]:
        """The same for asyncio."""
        extensions = self._extensions
        if extensions.see_enqueues:
            jobs = await extensions.before_enqueue(jobs)
        try:
            if connection is None:
                stored = await arun(enqueue(jobs, self._notify_limiter), self.awaited.session)
            else:
                session = self.database.async_caller_session(connection)
                stored = await arun(enqueue(jobs), session)
        except BaseException as error:
            if extensions.see_enqueues:
                await extensions.after_failure(list(jobs), error)
            raise
        handles = self._handles(jobs, stored)
        if extensions.see_enqueues:
            await extensions.after_enqueue(list(jobs), handles)
        return handles

    def send_signal(self, sending: Verb[bool], connection: Any = None) -> bool:
        """With the caller's ``connection`` the signal exists once its transaction commits."""
        session = self.store.session
        if connection is not None:
            session = self.database.caller_session(connection)
        return run(sending, session)

    async def asend_signal(self, sending: Verb[bool], connection: Any = None) -> bool:
        """The same for asyncio."""
        session = self.awaited.session
        if connection is not None:
            session = self.database.async_caller_session(connection)
        return await arun(sending, session)

    def store_members(
        self,
        jobs: Sequence[NewJob],
        storing: Callable[[Sequence[NewJob]], Verb[Members]],
        connection: Any = None,
    ) -> tuple[Any, list[JobHandle]]:
        """Store jobs of a flow by this verb, within the extensions. With the caller's
        ``connection`` they exist once its transaction commits."""
        extensions, session = self._extensions, self.store.session
        if connection is not None:
            session = self.database.caller_session(connection)
        if extensions.see_enqueues:
            jobs = extensions.run_blocking(extensions.before_enqueue(jobs))
        try:
            found, ids = run(storing(jobs), session)
        except BaseException as error:
            if extensions.see_enqueues:
                extensions.run_blocking(extensions.after_failure(list(jobs), error))
            raise
        handles = self._handles(jobs, [Enqueued(job_id, True) for job_id in ids]) if ids else []
        if extensions.see_enqueues:
            extensions.run_blocking(extensions.after_enqueue(list(jobs), handles))
        return found, handles

    async def astore_members(
        self,
        jobs: Sequence[NewJob],
        storing: Callable[[Sequence[NewJob]], Verb[Members]],
        connection: Any = None,
    ) -> tuple[Any, list[JobHandle]]:
        """The same for asyncio."""
        extensions, session = self._extensions, self.awaited.session
        if connection is not None:
            session = self.database.async_caller_session(connection)
        if extensions.see_enqueues:
            jobs = await extensions.before_enqueue(jobs)
        try:
            found, ids = await arun(storing(jobs), session)
        except BaseException as error:
            if extensions.see_enqueues:
                await extensions.after_failure(list(jobs), error)
            raise
        handles = self._handles(jobs, [Enqueued(job_id, True) for job_id in ids]) if ids else []
        if extensions.see_enqueues:
            await extensions.after_enqueue(list(jobs), handles)
        return found, handles

    def _handles(self, jobs: Sequence[NewJob], stored: Sequence[Enqueued]) -> list[JobHandle]:
        return [
            JobHandle(self, job.task, each.id, each.created, each.replaced, each.stored_time)
            for job, each in zip(jobs, stored, strict=True)
        ]


class JobHandle(msgspec.Struct, Generic[R_co], eq=False, gc=False):
    """A stored job, as its producer gets it: read it, cancel it, wait for its result."""

    _client: Client
    task: str
    id: int
    #: False if a job existed already: a live one with this unique key, or one stored with this
    #: idempotency key. `id` is that job's.
    created: bool
    #: True if the job waited already, and this call has replaced what it carries.
    replaced: bool
    _stored_time: StoredTime | None

    @property
    def created_at(self) -> datetime | None:
        """When the job was created, by the database's clock; None if it has ended."""
        return maybe_time(self._stored_time)

    def enqueue(self) -> ActionResult:
        """Put a pending job into the queue."""
        return self._client.store.operate(OperatorVerb.SUBMIT, [self.id], CLIENT, None)[0]

    async def aenqueue(self) -> ActionResult:
        return (await self._client.awaited.operate(OperatorVerb.SUBMIT, [self.id], CLIENT, None))[0]

    def cancel(self, reason: str | None = None, *, by: str = CLIENT) -> ActionResult:
        """Returns whether the job is canceled, its worker was asked to stop it, or it has ended."""
        return self._client.store.run(act(OperatorVerb.CANCEL, [self.id], by, reason))[0]

    async def acancel(self, reason: str | None = None, *, by: str = CLIENT) -> ActionResult:
        return (await self._client.awaited.run(act(OperatorVerb.CANCEL, [self.id], by, reason)))[0]

    def read(self) -> Job:
        """The job as it is now."""
        return _one(self._client.store.read([self.id]), self.id)

    async def aread(self) -> Job:
        return _one(await self._client.awaited.read([self.id]), self.id)

    def result(self, timeout: float | timedelta | None = None) -> R_co:
        """Wait until the job has ended. Returns what its task has returned.

        Raises JobFailed, JobCanceled, or JobNotFound if the job was deleted. After ``timeout``
        seconds raises ResultTimeout, a TimeoutError, and the job goes on. Not for handlers.
        """
        check_may_wait()
        seconds = seconds_of_wait(timeout)
        try:
            end = self._client.wait(self.id, seconds)
        except TimeoutError:
            raise too_late(self.id, seconds) from None
        return self._value_of(end)

    async def aresult(self, timeout: float | timedelta | None = None) -> R_co:
        """The same for asyncio."""
        check_may_wait()
        seconds = seconds_of_wait(timeout)
        try:
            end = await self._client.wait_async(self.id, seconds)
        except TimeoutError:
            raise too_late(self.id, seconds) from None
        return self._value_of(end)

    def _value_of(self, end: JobEnd | None) -> R_co:
        tasks, signature = self._client.tasks, None
        if tasks is not None and end is not None and end.task in tasks:
            signature = tasks.get(end.task).definition.signature
        value: R_co = value_of(self.id, end, signature)
        return value

    def __repr__(self) -> str:
        return f"<Job {self.id} of {self.task}{'' if self.created else ', existed already'}>"


def handle_of(client: Client, job_id: int, jobs: dict[int, Job]) -> JobHandle[Any]:
    """The handle of a job that was read."""
    return JobHandle(client, _one(jobs, job_id).task, job_id, False, False, None)


def _one(jobs: dict[int, Job], job_id: int) -> Job:
    if job_id not in jobs:
        raise JobNotFound(f"there is no job {job_id} any more: it was deleted, by hand or by age")
    return jobs[job_id]
