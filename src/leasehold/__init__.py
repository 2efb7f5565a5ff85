"""Leasehold: a durable job queue. Workers own jobs by lease, in PostgreSQL or SQLite."""

from leasehold.app import Leasehold
from leasehold.client import JobHandle
from leasehold.errors import (
    BadArguments,
    BadInput,
    BadName,
    BadPayload,
    BadSettings,
    IllegalTransition,
    JobNotFound,
    LeaseholdError,
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
from leasehold.model.ending import Cancel, Ending, Fail, Pause, RetryLater, Snooze
from leasehold.model.job import Job, NewJob
from leasehold.model.limit import Limit, Rate
from leasehold.model.retry import Retry
from leasehold.model.state import State
from leasehold.release import VERSION as _VERSION
from leasehold.tasks import Task
from leasehold.worker.context import Context

__version__ = _VERSION

__all__ = [
    "BadArguments",
    "BadInput",
    "BadName",
    "BadPayload",
    "BadSettings",
    "Cancel",
    "Context",
    "Ending",
    "Fail",
    "IllegalTransition",
    "Job",
    "JobHandle",
    "JobNotFound",
    "LeaseLost",
    "Leasehold",
    "LeaseholdError",
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
