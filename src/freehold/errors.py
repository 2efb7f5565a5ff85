"""All errors, as one tree.

FreeholdError
├── BadInput                 nothing was written; correct the input and call again
│   ├── BadName              a name outside the whitelist
│   ├── BadArguments         a call that does not fit the task's signature
│   ├── BadPayload           too large, too deep, NUL, NaN, or not JSON
│   ├── BadSettings          an invalid setting or URL
│   └── UnknownTask          no task of that name is registered here
├── Refused                  a rule of the queue forbids it; nothing was written
│   ├── IllegalTransition    the state machine has no such transition
│   ├── JobNotFound          no live or finished job has this id
│   ├── ScheduleNotFound     no schedule has this name
│   ├── BulkNotFound         no bulk operation has this id
│   ├── FlowNotFound         no batch or workflow has this id
│   ├── UniqueKeyTaken       another live job holds the unique key
│   ├── TenantExists         a tenant of this name exists already
│   └── TenantNotFound       the directory has no such tenant
├── NoResult                 a caller waited for the result of a job and gets none
│   ├── JobFailed            the job has failed
│   ├── JobCanceled          the job was canceled
│   ├── ResultTimeout        the job has not ended in time, and goes on; also a TimeoutError
│   └── BadResult            the stored result does not fit the task's return type
├── LeaseLost                the caller no longer owns the job
└── StoreError
    ├── StoreUnavailable     not reached, or cut off before the write: safe to try again
    │   └── StoreDenied      a wrong password, or rights that the role does not have
    │       └── MissingPrivilege  the database role may not do this
    ├── OutcomeUnknown       cut off during the write: repeat with an idempotency key
    ├── StoreReadOnly        reachable, but does not accept writes
    ├── StoreFull            no space left
    ├── RowRefused           the database refused a value of a row, and wrote nothing
    ├── SequenceBehind       a restore left the sequences behind: run `freehold migrate`
    ├── SchemaMissing        run `freehold migrate`
    └── SchemaTooNew         the database was migrated by a newer program
"""

from __future__ import annotations


class FreeholdError(Exception):
    """The root of all errors raised by Freehold."""


class BadInput(FreeholdError, ValueError):
    """The input is not valid; nothing was written."""


class BadName(BadInput):
    """A name outside the whitelist."""


class BadArguments(BadInput):
    """A call that does not fit the task's signature."""


class BadPayload(BadInput):
    """A value that cannot be stored as JSON within the limits."""


class BadSettings(BadInput):
    """A setting or URL is not valid."""


class UnknownTask(BadInput):
    """No task of that name is registered."""


class Refused(FreeholdError):
    """A rule of the queue forbids it; nothing was written."""


class IllegalTransition(Refused):
    """The state machine has no such transition."""


class JobNotFound(Refused):
    """No live or finished job has this id."""


class ScheduleNotFound(Refused):
    """No schedule has this name."""


class BulkNotFound(Refused):
    """No bulk operation has this id."""


class FlowNotFound(Refused):
    """There is no batch or workflow with this id, or its retention has expired."""


class UniqueKeyTaken(Refused):
    """Another live job holds the unique key."""

    def __init__(self, message: str, holder: int) -> None:
        super().__init__(message)
        self.holder = holder


class TenantExists(Refused):
    """A tenant of this name exists already."""


class TenantNotFound(Refused):
    """The directory has no tenant of this name."""


class NoResult(FreeholdError):
    """A caller waited for the result of a job and gets none."""

    def __init__(self, message: str, job_id: int) -> None:
        super().__init__(message)
        self.job_id = job_id


class JobFailed(NoResult):
    """The job has failed. The error of its last attempt is stored with it: the name of its type
    (None if no attempt raised one), its message, and its traceback."""

    def __init__(
        self,
        message: str,
        job_id: int,
        error_type: str | None = None,
        error_message: str | None = None,
        error_trace: str | None = None,
    ) -> None:
        super().__init__(message, job_id)
        self.error_type = error_type
        self.error_message = error_message
        self.error_trace = error_trace


class JobCanceled(NoResult):
    """The job was canceled."""


class ResultTimeout(NoResult, TimeoutError):
    """The job has not ended in time, and goes on."""


class BadResult(NoResult):
    """The stored result does not fit the return type of its task."""


class LeaseLost(FreeholdError):
    """The caller no longer owns the job; its write did not happen."""


class StoreError(FreeholdError):
    """The database could not execute the request."""


class StoreUnavailable(StoreError):
    """The database was not reached, or the write certainly did not happen: safe to retry."""


class StoreDenied(StoreUnavailable):
    """The database refuses the login, or the role lacks rights: an operator must act."""


class OutcomeUnknown(StoreError):
    """The connection broke during a write, which may or may not have happened."""


class StoreReadOnly(StoreError):
    """The database is reachable but does not accept writes."""


class StoreFull(StoreError):
    """The database has no space left."""


class MissingPrivilege(StoreDenied):
    """The role of the connection lacks a privilege in the database."""


class RowRefused(StoreError):
    """The database refused a value, of the caller or of a stored row; nothing was written."""


class SequenceBehind(StoreError):
    """The next id belongs to a stored job: a restore or a replica left the sequences behind."""


class SchemaMissing(StoreError):
    """The database has no Freehold schema, or an older one."""


class SchemaTooNew(StoreError):
    """The database was migrated by a newer version of Freehold."""
