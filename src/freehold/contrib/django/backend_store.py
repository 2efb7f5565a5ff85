"""The store of one backend, by the name that the backend has in TASKS.

Django makes a backend for each thread, so the app is kept here. If the jobs are in one of Django's
databases, everything that the backend itself reads and writes goes through Django's connection:
jobs are part of the caller's transaction, and a web process needs no second connection.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from django.db import connections, transaction

from freehold.app import Freehold
from freehold.client import JobHandle
from freehold.contrib.django.extension import DatabaseConnections, WorkerSignal
from freehold.contrib.django.handlers import defined_task
from freehold.contrib.django.options import BackendOptions
from freehold.contrib.django.store_url import MEMORY_URL, url_of_database
from freehold.errors import SchemaMissing
from freehold.model.history import Event
from freehold.model.job import Job, NewJob
from freehold.operator import SHOWN_LIMIT, Operator
from freehold.store.store import Store
from freehold.tasks import Task

_stores: dict[str, BackendStore] = {}
_lock = threading.Lock()
#: The tasks of all backends that were defined or used in this process, by name.
known_tasks: dict[str, Any] = {}


def store_of(alias: str, options: BackendOptions) -> BackendStore:
    """The same object for all threads, as long as the options are the same."""
    store = _stores.get(alias)
    if store is not None and store.options == options:
        return store
    with _lock:
        store = _stores.get(alias)
        if store is None or store.options != options:
            if store is not None:
                store.close()
            store = _stores[alias] = BackendStore(alias, options)
        return store


class BackendStore:
    def __init__(self, alias: str, options: BackendOptions) -> None:
        self.alias = alias
        self.options = options
        self._app: Freehold | None = None
        self._lock = threading.RLock()

    @property
    def app(self) -> Freehold:
        """Opened again if Django has changed the name of the database, as it does for tests."""
        url = self.options.url or url_of_database(self.options.database)
        with self._lock:
            if self._app is None:
                name = "django." + re.sub(r"[^\w.:-]", "_", self.alias, flags=re.ASCII)
                self._app = Freehold(url, schema=self.options.schema, name=name)
                self._app.extend(DatabaseConnections(self._app))
                self._app.extend(WorkerSignal(self._app, self.alias))
            elif self._app.url != url:
                self._app.close()
                self._app.url = url
            return self._app

    @property
    def is_in_django_database(self) -> bool:
        """False for a store of its own; and for a database in memory, which is for tests: no other
        process and no worker could read it."""
        return self.options.url is None and self.app.url != MEMORY_URL

    def task(self, task: Any) -> Task[Any, Any, JobHandle]:
        """The task of Freehold that runs a task of Django."""
        return defined_task(self.app, self.alias, self.options, task)

    def define_all(self) -> None:
        """For a worker: a job may be of a task that another backend has defined."""
        for task in tuple(known_tasks.values()):
            self.task(task)

    def enqueue(self, jobs: Sequence[NewJob]) -> list[JobHandle]:
        with self._named_remedy():
            if not self.is_in_django_database:
                return self.app.enqueue_many(jobs)
            connection = connections[self.options.database]
            if not connection.get_autocommit():
                return self.app.enqueue_many(jobs, connection=connection)
            with transaction.atomic(using=self.options.database):  # all of them, or none
                return self.app.enqueue_many(jobs, connection=connection)

    @contextmanager
    def _named_remedy(self) -> Iterator[None]:
        """`freehold migrate` alone would migrate another store."""
        try:
            yield
        except SchemaMissing as error:
            command = (
                "manage.py migrate" if self.is_in_django_database else "manage.py freehold migrate"
            )
            raise SchemaMissing(str(error).replace("freehold migrate", command)) from error

    def read(self, job_id: int) -> tuple[Job, list[Event]] | None:
        """A job and its events."""
        with self._store() as store:
            job = store.read([job_id]).get(job_id)
            if job is None:
                return None
            return job, store.events(job_id, SHOWN_LIMIT)

    @contextmanager
    def _store(self) -> Iterator[Store]:
        client = self.app._client
        with self._named_remedy():
            if not self.is_in_django_database:
                yield client.store
                return
            connection = connections[self.options.database]
            yield Store(client.database.caller_session(connection))

    @contextmanager
    def operator(self, via: str, *, writes: bool = False) -> Iterator[Operator]:
        """On Django's connection too: a request may hold locks already. Changes are in one
        transaction; reads are in none, which SQLite would begin with a lock for writing."""
        if not self.is_in_django_database:
            with self._named_remedy():
                yield self.app.operator.through(via)
            return
        changes = transaction.atomic(using=self.options.database) if writes else nullcontext()
        with changes, self._store() as store:
            yield Operator(store, via)

    def close(self) -> None:
        with self._lock:
            if self._app is not None:
                self._app.close()
