"""The names of Django's Tasks: of Django 6.0 and newer, or of the backport `django-tasks`.

No other module imports them from there.
"""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

try:
    from django.tasks import DEFAULT_TASK_BACKEND_ALIAS, TaskContext, task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskError, TaskResult, TaskResultStatus
    from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist
    from django.tasks.signals import task_enqueued, task_finished, task_started
    from django.utils.json import normalize_json

    BUILT_IN = True
except ImportError:
    try:
        from django_tasks import DEFAULT_TASK_BACKEND_ALIAS, TaskContext, task_backends
        from django_tasks.backends.base import BaseTaskBackend
        from django_tasks.base import Task, TaskError, TaskResult, TaskResultStatus
        from django_tasks.exceptions import TaskResultDoesNotExist
        from django_tasks.signals import task_enqueued, task_finished, task_started
        from django_tasks.utils import normalize_json

        try:
            from django_tasks.exceptions import InvalidTask
        except ImportError:  # its name up to 0.12
            from django_tasks.exceptions import InvalidTaskError as InvalidTask
    except ImportError as error:
        raise ImproperlyConfigured(
            f"freehold.contrib.django needs Django 6.0 or newer, or Django 5.2 with the package "
            f"django-tasks ({error}): install one of them"
        ) from error
    BUILT_IN = False

__all__ = [
    "BUILT_IN",
    "DEFAULT_TASK_BACKEND_ALIAS",
    "BaseTaskBackend",
    "InvalidTask",
    "Task",
    "TaskContext",
    "TaskError",
    "TaskResult",
    "TaskResultDoesNotExist",
    "TaskResultStatus",
    "normalize_json",
    "task_backends",
    "task_enqueued",
    "task_finished",
    "task_started",
]
