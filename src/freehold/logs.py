"""The job of each log line of a handler, for `logging` and for structlog.

    handler.addFilter(AttemptFilter())
    structlog.configure(processors=[add_attempt, ...])

`freehold worker` sets up its logs like this itself.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any

from freehold.telemetry import carried_fields, running_attempt, running_tenant

#: What a line of other code has, so that a format can name the fields.
_NONE = {"job": "-", "task": "-", "attempt": "-", "queue": "-"}


def attempt_fields() -> dict[str, Any]:
    """Job, task, attempt, queue, tenant and carried variables of the running handler; nothing
    outside of one. Coroutines and threads of a handler have them too."""
    attempt = running_attempt.get()
    if attempt is None:
        return {}
    tenant = running_tenant.get()
    return {
        **carried_fields.get(),
        "job": attempt.job_id,
        "task": attempt.task,
        "attempt": attempt.number,
        "queue": attempt.queue,
        **({} if tenant is None else {"tenant": tenant}),
    }


class AttemptFilter(logging.Filter):
    """Adds the fields to records as attributes, for formats such as ``%(job)s``. It refuses no
    record. Add it to handlers: a filter of a logger does not see the records of its children."""

    def filter(self, record: logging.LogRecord) -> bool:
        for name, value in (_NONE | attempt_fields()).items():
            if not hasattr(record, name):
                setattr(record, name, value)
        return True


def add_attempt(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A processor of structlog. Fields that the line has already are kept."""
    for name, value in attempt_fields().items():
        event.setdefault(name, value)
    return event
