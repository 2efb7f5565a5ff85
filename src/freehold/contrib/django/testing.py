"""Tasks in the tests of a Django project: stored in memory, run in the test's own thread.

    TASKS = {"default": {"BACKEND": "freehold.contrib.django.testing.TestBackend"}}

    class OrderTests(TestCase):
        def test_bill(self):
            bill.enqueue(order.id)
            self.assertEqual(run_tasks().succeeded, 1)

The worker is the real one, on virtual time. Handlers use the connection of the test, and so see the
rows of its transaction. A job whose enqueue was rolled back does not exist; so the jobs of a
`TestCase` end with it. After a `TransactionTestCase`, call `clear_tasks`.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connections, transaction

from freehold.app import Freehold
from freehold.client import JobHandle
from freehold.clock import system_micros
from freehold.contrib.django.backend import FreeholdBackend
from freehold.contrib.django.backend_store import BackendStore
from freehold.contrib.django.compat import DEFAULT_TASK_BACKEND_ALIAS, task_backends
from freehold.contrib.django.extension import FinishedSignal
from freehold.contrib.django.handlers import defined_task
from freehold.contrib.django.options import BackendOptions
from freehold.contrib.django.store_url import MEMORY_URL
from freehold.errors import BadInput
from freehold.extensions import EndedAttempt
from freehold.model.history import Event
from freehold.model.job import Job, NewJob
from freehold.tasks import Task
from freehold.testing import Harness, RunReport
from freehold.testing.inline import out_of_loop

_stores: dict[str, TestStore] = {}
_lock = threading.Lock()


def run_tasks(
    backend: str = DEFAULT_TASK_BACKEND_ALIAS,
    *,
    scheduled: bool = False,
    seconds: float | None = None,
    raise_errors: bool = False,
) -> RunReport:
    """Run the due jobs with their retries, in this thread. The options are those of
    `Harness.run`."""
    store = _test_store(backend)
    store.drop_rolled_back()
    store.define_all()
    return store.harness.run(scheduled=scheduled, seconds=seconds, raise_errors=raise_errors)


async def arun_tasks(backend: str = DEFAULT_TASK_BACKEND_ALIAS, **options: Any) -> RunReport:
    """The same for asyncio, in the thread that has the connection of the test."""
    report: RunReport = await sync_to_async(run_tasks)(backend, **options)
    return report


def clear_tasks(backend: str = DEFAULT_TASK_BACKEND_ALIAS) -> None:
    """Delete all jobs."""
    _test_store(backend).restart()


def _test_store(alias: str) -> TestStore:
    backend = task_backends[alias]
    if not isinstance(backend, TestBackend):
        raise BadInput(
            f"TASKS[{alias!r}] is {type(backend).__name__}: in tests, use "
            "freehold.contrib.django.testing.TestBackend"
        )
    return backend.store


class TestBackend(FreeholdBackend):
    """`FreeholdBackend` for tests."""

    __test__ = False  # not a test, whatever its name

    @property
    def store(self) -> TestStore:
        with _lock:
            store = _stores.get(self.alias)
            if store is None or store.options != self._read_options:
                store = _stores[self.alias] = TestStore(self.alias, self._read_options)
            return store


class _Signal(FinishedSignal):
    """In the thread of the test: receivers use its connection, too."""

    async def ended(self, attempt: EndedAttempt) -> None:
        with out_of_loop():
            super().ended(attempt)


class _Enqueued:
    """Django keeps this callback as long as the transaction may commit."""

    def __init__(self, job_id: int) -> None:
        self.job_id = job_id
        self.is_committed = False

    def __call__(self) -> None:
        self.is_committed = True


class TestStore(BackendStore):
    """A store in memory, which drops jobs whose transaction was rolled back."""

    __test__ = False

    def __init__(self, alias: str, options: BackendOptions) -> None:
        super().__init__(alias, options)
        self._memory = Freehold(MEMORY_URL, name="django.tests")
        self._memory.extend(_Signal(self._memory, alias))
        self._uncommitted: list[_Enqueued] = []
        self._enter()

    def _enter(self) -> None:
        self.harness = Harness(self._memory)
        self.harness.__enter__()

    def restart(self) -> None:
        self.harness.__exit__()
        self._uncommitted.clear()
        self._enter()

    @property
    def app(self) -> Freehold:
        return self._memory

    @property
    def is_in_django_database(self) -> bool:
        return False

    def task(self, task: Any) -> Task[Any, Any, JobHandle]:
        """Coroutine functions too run in the thread of the test, as Django runs them in views."""
        return defined_task(self._memory, self.alias, self.options, task, blocking=True)

    def enqueue(self, jobs: Sequence[NewJob]) -> list[JobHandle]:
        self.drop_rolled_back()
        if not self.harness.jobs():  # a new test, at its own time
            self.harness.clock.micros = max(self.harness.clock.micros, system_micros())
        handles = self._memory.enqueue_many(jobs)
        database = self.options.database
        if connections[database].in_atomic_block:
            for handle in handles:
                if handle.created:
                    marker = _Enqueued(handle.id)
                    self._uncommitted.append(marker)
                    transaction.on_commit(marker, using=database)
        return handles

    def drop_rolled_back(self) -> None:
        waiting = {id(each[1]) for each in connections[self.options.database].run_on_commit}
        gone = [m for m in self._uncommitted if not m.is_committed and id(m) not in waiting]
        present = self._memory._client.store.read([each.job_id for each in gone])
        if present:
            self._memory.operator.delete(*present, by="test")
        self._uncommitted = [m for m in self._uncommitted if id(m) in waiting]

    def read(self, job_id: int) -> tuple[Job, list[Event]] | None:
        self.drop_rolled_back()
        return super().read(job_id)

    def close(self) -> None:
        """Jobs stay until their test ends."""
