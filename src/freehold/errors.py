"""Everything that can go wrong, as one tree.

FreeholdError
├── BadInput                 nothing was written; correct the input and call again
│   ├── BadName              a name outside the whitelist
│   ├── BadArguments         a call that does not fit the task's signature
│   ├── BadPayload           too large, too deep, NUL, NaN, or not JSON
│   ├── BadSettings          a setting or URL that makes no sense
│   └── UnknownTask          no task of that name is registered here
├── Refused                  a rule of the queue says no; nothing was written
│   ├── IllegalTransition    the state machine has no such arrow
│   ├── JobNotFound          no live or finished job has this id
│   ├── UniqueKeyTaken       another live job holds the unique key
│   ├── TenantExists         a tenant of this name is there already
│   └── TenantNotFound       the directory knows no such tenant
├── LeaseLost                the caller no longer owns the job
└── StoreError
    ├── StoreUnavailable     not reached, or cut off before the write: safe to try again
    ├── OutcomeUnknown       cut off during the write: repeat with an idempotency key
    ├── StoreReadOnly        reachable, but takes no writes
    ├── StoreFull            no space left
    ├── SchemaMissing        run `freehold migrate`
    └── SchemaTooNew         the database was migrated by a newer program
"""

from __future__ import annotations


class FreeholdError(Exception):
    """The root of all errors raised by Freehold."""


class BadInput(FreeholdError, ValueError):
    """The caller's input cannot be used; nothing was written."""


class BadName(BadInput):
    """A name outside the whitelist."""


class BadArguments(BadInput):
    """A call that does not fit the task's signature."""


class BadPayload(BadInput):
    """A value that cannot be stored as JSON within the limits."""


class BadSettings(BadInput):
    """A setting or URL that makes no sense."""


class UnknownTask(BadInput):
    """No task of that name is registered."""


class Refused(FreeholdError):
    """A rule of the queue says no; nothing was written."""


class IllegalTransition(Refused):
    """The state machine has no such arrow."""


class JobNotFound(Refused):
    """No live or finished job has this id."""


class UniqueKeyTaken(Refused):
    """Another live job holds the unique key."""

    def __init__(self, message: str, holder: int) -> None:
        super().__init__(message)
        self.holder = holder


class TenantExists(Refused):
    """A tenant of this name is there already."""


class TenantNotFound(Refused):
    """The directory knows no tenant of this name."""


class LeaseLost(FreeholdError):
    """The caller no longer owns the job; whatever it was about to write was not written."""


class StoreError(FreeholdError):
    """The database could not do what was asked."""


class StoreUnavailable(StoreError):
    """The database was not reached, or the write certainly did not happen: safe to try again."""


class OutcomeUnknown(StoreError):
    """The connection broke while a write was under way: it may or may not have happened."""


class StoreReadOnly(StoreError):
    """The database is reachable but takes no writes."""


class StoreFull(StoreError):
    """The database has no space left."""


class SchemaMissing(StoreError):
    """The database has no Freehold schema, or an older one."""


class SchemaTooNew(StoreError):
    """The database was migrated by a newer version of Freehold."""
