"""System checks: what is wrong with the settings of a backend, and how it treats transactions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import connections

from freehold.contrib.django.compat import task_backends
from freehold.contrib.django.options import problems
from freehold.errors import FreeholdError, SchemaMissing
from freehold.model.names import check_schema
from freehold.model.plural import count

if TYPE_CHECKING:
    from freehold.contrib.django.backend import FreeholdBackend

_APP = "freehold.contrib.django"


def check_backend(backend: FreeholdBackend) -> Sequence[Any]:
    """Without a connection to any database."""
    where = f"TASKS[{backend.alias!r}]"
    found = [
        checks.Error(f"{where}: {each}", id="freehold.E001") for each in problems(backend.options)
    ]
    if found:
        return found
    options = backend.store.options
    if options.url is None and options.database not in connections.settings:
        text = (
            f'{where}: OPTIONS["DATABASE"] is {options.database!r}, which DATABASES does not have'
        )
        return [checks.Error(text, id="freehold.E002")]
    try:
        check_schema(options.schema)
        backend.store.app._missing_file  # noqa: B018 - it reads the settings, and the URL
    except (ImproperlyConfigured, FreeholdError) as error:
        return [checks.Error(f"{where}: {error}", id="freehold.E003")]
    return [*_installed(where), *_transactions(backend, where)]


def _installed(where: str) -> list[Any]:
    if apps.is_installed(_APP):
        return []
    return [
        checks.Warning(
            f"{where}: {_APP} is not in INSTALLED_APPS",
            hint=f"Add {_APP!r}: `manage.py migrate` then creates the tables of the jobs, and "
            "`manage.py freehold worker` runs them.",
            id="freehold.W001",
        )
    ]


def _transactions(backend: FreeholdBackend, where: str) -> list[Any]:
    options = backend.store.options
    if options.url is not None:
        return [
            checks.Info(
                f"{where}: jobs are in a store of their own, and are stored at once, also if the "
                "transaction of the caller is rolled back later",
                hint="Call transaction.on_commit(functools.partial(task.enqueue, ...)), or name "
                'the database of the transaction in OPTIONS["DATABASE"].',
                id="freehold.I001",
            )
        ]
    connection = connections[options.database]
    if connection.vendor != "sqlite" or connection.is_in_memory_db():
        return []
    mode = (connection.settings_dict.get("OPTIONS") or {}).get("transaction_mode") or "DEFERRED"
    if str(mode).upper() == "IMMEDIATE":
        return []
    return [
        checks.Warning(
            f"{where}: jobs are written to the SQLite file of the database {options.database!r} "
            "by Django's own connection, in the transaction of the caller. With "
            f"transaction_mode {mode} a transaction that reads before it writes fails with "
            '"database is locked" whenever a worker has written meanwhile',
            hint='Set "transaction_mode": "IMMEDIATE" in the OPTIONS of this database.',
            id="freehold.W002",
        )
    ]


def check_schema_exists(
    app_configs: Any = None, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[Any]:
    """Is the schema of the jobs up to date? Only where the command has named databases."""
    from freehold.contrib.django.backend import FreeholdBackend

    found = []
    for backend in task_backends.all():
        if not isinstance(backend, FreeholdBackend) or check_backend_errors(backend):
            continue
        store = backend.store
        if store.options.database not in (databases or ()) or not store.is_in_django_database:
            continue
        found += _schema(backend)
    return found


def check_backend_errors(backend: FreeholdBackend) -> list[Any]:
    return [each for each in check_backend(backend) if each.level >= checks.ERROR]


def _schema(backend: FreeholdBackend) -> list[Any]:
    """Nothing if Django's own tables are missing too: `migrate` is about to create all of them."""
    store = backend.store
    connection = connections[store.options.database]
    with connection.cursor() as cursor:
        if "django_migrations" not in connection.introspection.table_names(cursor):
            return []
    try:
        pending = count(len(store.app._database.pending()), "migration")
        missing = None if pending.startswith("0 ") else f"{pending} pending"
    except SchemaMissing:
        missing = "missing"
    finally:
        store.close()
    if missing is None:
        return []
    text = f"TASKS[{backend.alias!r}]: the schema of the jobs is {missing}"
    return [checks.Warning(text, hint="Run `manage.py migrate`.", id="freehold.W003")]
