"""PostgreSQL's errors as Freehold's."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import NoReturn

import psycopg
from psycopg import errors as pg

from freehold.errors import (
    MissingPrivilege,
    OutcomeUnknown,
    RowRefused,
    SchemaMissing,
    SequenceBehind,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from freehold.store.statements import Conflict

_NO_SCHEMA = (
    pg.UndefinedTable,
    pg.UndefinedFunction,
    pg.UndefinedColumn,
    pg.InvalidSchemaName,
)
_NOT_PREPARED = (pg.InvalidSqlStatementName, pg.DuplicatePreparedStatement)
_TRY_AGAIN = (
    pg.SerializationFailure,
    pg.DeadlockDetected,
    pg.LockNotAvailable,
    pg.QueryCanceled,
    pg.TooManyConnections,
)
#: Values that the database cannot store or compute with: out of range, against a constraint, too
#: large for an index.
_ROW_REFUSED = (psycopg.DataError, psycopg.IntegrityError, pg.ProgramLimitExceeded)
#: The function in which a standby refuses an unlogged table, before it sees a write.
_UNLOGGED = "get_relation_info"
#: The function that refuses a row of a default partition whose own partition was created while the
#: row's statement waited. The next try finds the new partition.
_PARTITION_CREATED = "ExecPartitionCheckEmitError"
#: The index that refuses an id that is given twice.
_JOB_ID = "job_pkey"
_EXPLAINED = (pg.ReadOnlySqlTransaction, pg.DiskFull, pg.InsufficientPrivilege)


class StatementNotPrepared(StoreUnavailable):
    """A pooler routed the statement to another server connection than its preparation."""


class NoAnswer(psycopg.OperationalError):
    """A frozen server may execute the statement later: nothing more is asked of it."""

    def __init__(self, seconds: float | None) -> None:
        super().__init__(f"the server did not answer within {seconds or 0:g} s")


@contextlib.contextmanager
def translated(*, writes: bool, pooled: bool = True) -> Iterator[None]:
    """``pooled``: the connection is Freehold's own; the caller's is not explained if it breaks."""
    try:
        yield
    except psycopg.Error as error:
        raise_as(translation(error, writes=writes, pooled=pooled), error)


def raise_as(translated_error: BaseException, error: BaseException) -> NoReturn:
    """With the original error as its cause, unless it is the same."""
    if translated_error is error:
        raise error
    raise translated_error from error


def translation(error: psycopg.Error, *, writes: bool, pooled: bool = True) -> Exception:
    if isinstance(error, pg.UniqueViolation):
        return _conflict(error.diag.constraint_name or "")
    if isinstance(error, _NOT_PREPARED):
        return StatementNotPrepared(f"a pooler lost a prepared statement: {_first_line(error)}")
    if isinstance(error, pg.FeatureNotSupported) and error.diag.source_function == _UNLOGGED:
        return _read_only()
    if isinstance(error, (*_NO_SCHEMA, *_TRY_AGAIN, *_EXPLAINED)):
        return _explained(error)
    if error.diag.source_function == _PARTITION_CREATED:
        return StoreUnavailable("the partition of this day was just created, try again")
    if isinstance(error, _ROW_REFUSED):
        return RowRefused(f"the database refused: {_first_line(error)}")
    if isinstance(error, psycopg.OperationalError):
        return _broken(error, writes) if pooled else error
    return StoreError(f"the database refused: {_first_line(error)}")


def caller_error(error: Exception) -> Exception:
    """For a statement in the caller's transaction. Errors that do not concern the job stay as the
    caller's library has raised them."""
    if isinstance(error, psycopg.Error):
        translated_error = translation(error, writes=True, pooled=False)
    else:
        translated_error = _library_error(error)
    if translated_error is not error:
        translated_error.__cause__ = error
    return translated_error


def _library_error(error: Exception) -> Exception:
    chain = list(_chain(error))
    states = {getattr(each, "sqlstate", None) or getattr(each, "pgcode", None) for each in chain}
    if pg.UniqueViolation.sqlstate in states:
        names = (getattr(getattr(e, "diag", e), "constraint_name", None) for e in chain)
        return _conflict(next(filter(None, names), ""))
    if states & {each.sqlstate for each in _NO_SCHEMA}:
        return _no_schema(_first_line(chain[-1]))
    return error


def _conflict(index: str) -> Exception:
    if index != _JOB_ID:
        return Conflict(index)
    return SequenceBehind(
        "the next job id is taken: the sequences of the schema are behind its rows, as after a "
        "restore without them or on a promoted logical replica. Nothing was written. Run "
        "`freehold migrate`, which advances them"
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """SQLAlchemy and Django wrap the errors of their driver."""
    while error is not None:
        yield error
        error = getattr(error, "orig", None) or error.__cause__


def _explained(error: psycopg.Error) -> StoreError:
    line = _first_line(error)
    if isinstance(error, _NO_SCHEMA):
        return _no_schema(line)
    if isinstance(error, pg.ReadOnlySqlTransaction):
        return _read_only()
    if isinstance(error, pg.DiskFull):
        return StoreFull("the database has no space left: free some")
    if isinstance(error, pg.InsufficientPrivilege):
        return _missing_privilege(line)
    return StoreUnavailable(f"the database could not do this now, try again: {line}")


def _missing_privilege(line: str) -> MissingPrivilege:
    return MissingPrivilege(
        f"the database role may not do this ({line}): only the owner role migrates, and creates, "
        "moves and drops tenants; for anything else, run deploy/postgres/roles.sql again as the "
        "administrator"
    )


def _no_schema(line: str) -> SchemaMissing:
    return SchemaMissing(
        "the database schema is missing or older than this version of Freehold needs "
        f"({line}): run `freehold migrate`"
    )


def _read_only() -> StoreReadOnly:
    return StoreReadOnly("the database takes no writes: is it a standby?")


def _broken(error: psycopg.Error, writes: bool) -> StoreError:
    line = _first_line(error)
    if not writes:
        return StoreUnavailable(f"the connection broke: {line}")
    return OutcomeUnknown(
        f"the connection broke during a write ({line}): it may or may not have happened; "
        "repeat it with the same idempotency key"
    )


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0]


def cancellation_behind(error: BaseException) -> asyncio.CancelledError | None:
    """A canceled psycopg waits until the server has canceled too. If the connection breaks
    meanwhile, it raises that error instead, and a part of a worker that continues after errors
    would never end."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, asyncio.CancelledError):
            return None if seen is error else seen
        seen = seen.__cause__ or seen.__context__
    return None
