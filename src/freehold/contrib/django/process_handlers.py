"""Where a child process (``isolation="process"``) finds the handler of a task of Django.

It looks for an attribute of this module. The worker names handlers after the backend and the task,
``default/shop:tasks:send``, without dots. The child has imported `worker_app` before.
"""

from __future__ import annotations

from typing import Any

from freehold.contrib.django.backend import backend_of
from freehold.contrib.django.results import find_task


def __getattr__(name: str) -> Any:
    alias, _, path = name.partition("/")
    task = find_task(path.replace(":", ".")) if path else None
    if task is None:
        raise AttributeError(name)
    return backend_of(alias).store.task(task)
