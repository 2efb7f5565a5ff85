"""PostgreSQL's errors in Freehold's words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import NoReturn

import psycopg
from psycopg import errors as pg

from freehold.errors import (
    OutcomeUnknown,
    SchemaMissing,
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
_FORGOTTEN = (pg.InvalidSqlStatementName, pg.DuplicatePreparedStatement)
_TRY_AGAIN = (
    pg.SerializationFailure,
    pg.DeadlockDetected,
    pg.LockNotAvailable,
    pg.QueryCanceled,
    pg.TooManyConnections,
)
#: Where a standby refuses to plan what names an unlogged table, before it sees that it would write.
_UNLOGGED = "get_relation_info"
_EXPLAINED = (pg.ReadOnlySqlTransaction, pg.DiskFull, pg.InsufficientPrivilege)


class Forgotten(StoreUnavailable):
    """A pooler gave us another server connection than the one on which we had prepared."""


@contextlib.contextmanager
def translated(*, writes: bool, pooled: bool = True) -> Iterator[None]:
    """``pooled``: the connection is ours, so that a broken one is our business to explain."""
    try:
        yield
    except psycopg.Error as error:
        raise_as(translation(error, writes=writes, pooled=pooled), error)


def raise_as(ours: BaseException, error: BaseException) -> NoReturn:
    """In our words, where there are any; what it came from stays to be seen."""
    if ours is error:
        raise error
    raise ours from error


def translation(error: psycopg.Error, *, writes: bool, pooled: bool = True) -> Exception:
    if isinstance(error, pg.UniqueViolation):
        return Conflict(error.diag.constraint_name or "")
    if isinstance(error, _FORGOTTEN):
        return Forgotten(f"prepared statements get lost on the way: {_first_line(error)}")
    if isinstance(error, pg.FeatureNotSupported) and error.diag.source_function == _UNLOGGED:
        return _read_only()
    if isinstance(error, (*_NO_SCHEMA, *_TRY_AGAIN, *_EXPLAINED)):
        return _explained(error)
    if isinstance(error, psycopg.OperationalError):
        return _broken(error, writes) if pooled else error
    return StoreError(f"the database refused: {_first_line(error)}")


def caller_error(error: Exception) -> Exception:
    """Of a statement in the caller's transaction. What is no business of ours stays what the
    caller's library has raised."""
    if isinstance(error, psycopg.Error):
        ours = translation(error, writes=True, pooled=False)
    else:
        ours = _library_error(error)
    if ours is not error:
        ours.__cause__ = error
    return ours


def _library_error(error: Exception) -> Exception:
    behind = list(_behind(error))
    states = {getattr(each, "sqlstate", None) or getattr(each, "pgcode", None) for each in behind}
    if pg.UniqueViolation.sqlstate in states:
        names = (getattr(getattr(e, "diag", e), "constraint_name", None) for e in behind)
        return Conflict(next(filter(None, names), ""))
    if states & {each.sqlstate for each in _NO_SCHEMA}:
        return _no_schema(_first_line(behind[-1]))
    return error


def _behind(error: BaseException | None) -> Iterator[BaseException]:
    """SQLAlchemy and Django wrap what their driver has raised."""
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
        return StoreError(f"the database role may not do this: {line}")
    return StoreUnavailable(f"the database asks to try again: {line}")


def _no_schema(line: str) -> SchemaMissing:
    return SchemaMissing(
        f"the database lacks what this version of Freehold needs ({line}): run `freehold migrate`"
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
