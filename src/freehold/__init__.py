"""Freehold: a durable job queue. Workers own jobs by lease, in PostgreSQL or SQLite."""

from freehold.app import Freehold
from freehold.client import JobHandle
from freehold.errors import (
    BadArguments,
    BadInput,
    BadName,
    BadPayload,
    BadSettings,
    FreeholdError,
    IllegalTransition,
    JobNotFound,
    LeaseLost,
    OutcomeUnknown,
    Refused,
    SchemaMissing,
    SchemaTooNew,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    TenantExists,
    TenantNotFound,
    UniqueKeyTaken,
    UnknownTask,
)
from freehold.model.handler_exceptions import (
    Cancel,
    Fail,
    HandlerException,
    Pause,
    RetryLater,
    Snooze,
)
from freehold.model.job import Job, NewJob
from freehold.model.limit import Limit, Rate
from freehold.model.retry import Retry
from freehold.model.state import State
from freehold.tasks import Task
from freehold.version import VERSION as _VERSION
from freehold.worker.execution.context import Context

__version__ = _VERSION

__all__ = [
    "BadArguments",
    "BadInput",
    "BadName",
    "BadPayload",
    "BadSettings",
    "Cancel",
    "Context",
    "Fail",
    "Freehold",
    "FreeholdError",
    "HandlerException",
    "IllegalTransition",
    "Job",
    "JobHandle",
    "JobNotFound",
    "LeaseLost",
    "Limit",
    "NewJob",
    "OutcomeUnknown",
    "Pause",
    "Rate",
    "Refused",
    "Retry",
    "RetryLater",
    "SchemaMissing",
    "SchemaTooNew",
    "Snooze",
    "State",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "StoreUnavailable",
    "Task",
    "TenantExists",
    "TenantNotFound",
    "UniqueKeyTaken",
    "UnknownTask",
]
