"""The tables of the jobs: created and migrated together with those of Django."""

from __future__ import annotations

from typing import Any

from freehold.contrib.django.backend import FreeholdBackend
from freehold.contrib.django.compat import task_backends


def migrate_stores(*, using: str, verbosity: int = 1, stdout: Any = None, **kwargs: Any) -> None:
    """After `manage.py migrate` of a database, and after the creation of a test database: the
    stores that are in this database."""
    for backend in task_backends.all():
        if not isinstance(backend, FreeholdBackend):
            continue
        store = backend.store
        if store.options.database != using or not store.is_in_django_database:
            continue
        try:
            applied = store.app.migrate()
        finally:
            store.close()  # an open connection would keep a test database from being dropped
        if applied and verbosity >= 1 and stdout is not None:
            names = ", ".join(f"{each.version:04} {each.name}" for each in applied)
            stdout.write(f"  Freehold: schema of TASKS[{backend.alias!r}]: {names}\n")
