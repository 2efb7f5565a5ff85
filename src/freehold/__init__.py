"""Freehold: a durable job queue. Workers own jobs by lease, in PostgreSQL or SQLite."""

from freehold.app import Freehold
from freehold.client import JobHandle
from freehold.dependencies import Depends
from freehold.errors import (
    BadArguments,
    BadInput,
    BadName,
    BadPayload,
    BadResult,
    BadSettings,
    BulkNotFound,
    FlowNotFound,
    FreeholdError,
    IllegalTransition,
    JobCanceled,
    JobFailed,
    JobNotFound,
    LeaseLost,
    MissingPrivilege,
    NoResult,
    OutcomeUnknown,
    Refused,
    ResultTimeout,
    RowRefused,
    ScheduleNotFound,
    SchemaMissing,
    SchemaTooNew,
    SequenceBehind,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    TenantExists,
    TenantNotFound,
    UniqueKeyTaken,
    UnknownTask,
)
from freehold.extensions import EndedAttempt, Extension
from freehold.flows import Batch
from freehold.model.audit import AuditEntry, AuditFilter, AuditKind, AuditPage
from freehold.model.bulk import Amendment, BulkOperation, BulkPreview, BulkState, BulkVerb
from freehold.model.explain import Cause, LimitUse, PauseInfo, TenantUse
from freehold.model.flow import Counts, Flow, FlowKind, FlowNode, FlowState, OnFailure
from freehold.model.handler_exceptions import (
    Cancel,
    Fail,
    HandlerException,
    Pause,
    RetryLater,
    Snooze,
)
from freehold.model.history import Event, EventKind, TimelineEntry
from freehold.model.job import Attempt, ErrorInfo, Job, Lease, NewJob, Report, StopRequest
from freehold.model.job_log import LogLine, Progress
from freehold.model.lease_history import LeaseRecord
from freehold.model.limit import Limit, Rate
from freehold.model.operator_actions import ActionResult, ActionStatus
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.retry import Retry
from freehold.model.schedule import Tick
from freehold.model.secrets import Secret
from freehold.model.state import Stage, State
from freehold.model.step import Step, StepKind
from freehold.model.tenant import Tenant, TenantState
from freehold.model.timing import Cron, Every
from freehold.model.waiting import Debounce, Throttle, Unique, Waiting
from freehold.model.worker_info import LiveWorker, WorkerState
from freehold.operator import AsyncOperator, CloneChanges, JobDetail, Operator
from freehold.operator_schedules import ScheduleInfo, ScheduleState
from freehold.store.types import JobCounts, JobFilter, JobPage, LaneInfo, NamedLimit, QueueInfo
from freehold.task_group import TaskGroup
from freehold.tasks import Task
from freehold.tenants.tenants import TenantMigration, Tenants
from freehold.version import VERSION as _VERSION
from freehold.worker.config import WorkerSettings
from freehold.worker.execution.context import Context
from freehold.workflow_nodes import Node
from freehold.workflows import Workflow

__version__ = _VERSION

__all__ = [
    "ActionResult",
    "ActionStatus",
    "Amendment",
    "AsyncOperator",
    "Attempt",
    "AuditEntry",
    "AuditFilter",
    "AuditKind",
    "AuditPage",
    "BadArguments",
    "BadInput",
    "BadName",
    "BadPayload",
    "BadResult",
    "BadSettings",
    "Batch",
    "BulkNotFound",
    "BulkOperation",
    "BulkPreview",
    "BulkState",
    "BulkVerb",
    "Cancel",
    "Cause",
    "CloneChanges",
    "Context",
    "Counts",
    "Cron",
    "Debounce",
    "Depends",
    "EndedAttempt",
    "ErrorInfo",
    "Event",
    "EventKind",
    "Every",
    "Extension",
    "Fail",
    "Flow",
    "FlowKind",
    "FlowNode",
    "FlowNotFound",
    "FlowState",
    "Freehold",
    "FreeholdError",
    "HandlerException",
    "IllegalTransition",
    "Job",
    "JobCanceled",
    "JobCounts",
    "JobDetail",
    "JobFailed",
    "JobFilter",
    "JobHandle",
    "JobNotFound",
    "JobPage",
    "LaneInfo",
    "Lease",
    "LeaseLost",
    "LeaseRecord",
    "Limit",
    "LimitUse",
    "LiveWorker",
    "LogLine",
    "MissingPrivilege",
    "NamedLimit",
    "NewJob",
    "NoResult",
    "Node",
    "OnFailure",
    "Operator",
    "Outcome",
    "OutcomeKind",
    "OutcomeUnknown",
    "Pause",
    "PauseInfo",
    "Progress",
    "QueueInfo",
    "Rate",
    "Refused",
    "Report",
    "ResultTimeout",
    "Retry",
    "RetryLater",
    "RowRefused",
    "ScheduleInfo",
    "ScheduleNotFound",
    "ScheduleState",
    "SchemaMissing",
    "SchemaTooNew",
    "Secret",
    "SequenceBehind",
    "Snooze",
    "Stage",
    "State",
    "Step",
    "StepKind",
    "StopRequest",
    "StoreDenied",
    "StoreError",
    "StoreFull",
    "StoreReadOnly",
    "StoreUnavailable",
    "Task",
    "TaskGroup",
    "Tenant",
    "TenantExists",
    "TenantMigration",
    "TenantNotFound",
    "TenantState",
    "TenantUse",
    "Tenants",
    "Throttle",
    "Tick",
    "TimelineEntry",
    "Unique",
    "UniqueKeyTaken",
    "UnknownTask",
    "Waiting",
    "WorkerSettings",
    "WorkerState",
    "Workflow",
]
