"""The apps of a Django project for the command line, by the names of their backends in TASKS:
``--app freehold.contrib.django.worker_app:default``.

Importing this module sets up Django, in workers and in their child processes, and imports the
modules that define tasks.
"""

from __future__ import annotations

import os
from typing import Any

import django
from django.apps import apps
from django.utils.module_loading import autodiscover_modules

from freehold.errors import BadSettings

if not apps.ready:
    if "DJANGO_SETTINGS_MODULE" not in os.environ:
        raise BadSettings(
            "DJANGO_SETTINGS_MODULE is not set: use `manage.py freehold ...`, or name the settings "
            "of the project in this variable"
        )
    django.setup()

from freehold.contrib.django.backend import FreeholdBackend, backend_of
from freehold.contrib.django.checks import check_backend_errors
from freehold.contrib.django.compat import task_backends


def freehold_aliases() -> list[str]:
    """The names of the backends that are Freehold's."""
    return [each.alias for each in task_backends.all() if isinstance(each, FreeholdBackend)]


def discover_tasks() -> None:
    modules = dict.fromkeys(
        name
        for alias in freehold_aliases()
        for name in backend_of(alias).store.options.autodiscover
    )
    for name in modules:
        autodiscover_modules(name)


discover_tasks()


def __getattr__(alias: str) -> Any:
    if alias not in freehold_aliases():
        raise AttributeError(alias)
    backend = backend_of(alias)
    if errors := check_backend_errors(backend):
        raise BadSettings("; ".join(str(each.msg) for each in errors))
    store = backend.store
    store.define_all()
    return store.app
