"""Rows that no claim or sweep can write: older than a constraint, or written by their owner."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from tests.stores import StoreUnderTest

#: PostgreSQL's counters have 16 bits. SQLite accepts any number, but no text outside of UTF-8.
OUT_OF_RANGE = {"postgres": "attempt = 32767", "sqlite": "args = cast(x'7bff7d' as text)"}
LOST_TOO_OFTEN = {
    "postgres": "lost_attempts = 32767",
    "sqlite": "args = cast(x'7bff7d' as text)",
}
#: Against the constraints of both stores.
FORBIDDEN = {"postgres": "max_attempts = 0", "sqlite": "max_attempts = 0"}
#: A trigger of SQLite names columns of the new row by its name.
_COLUMNS = {
    "bulk_step": "new.number as number, new.operation as operation",
    "history": "new.state as state, new.queue as queue",
}


def poison(store: StoreUnderTest, job_id: int, how: dict[str, str]) -> None:
    change = f"update {{s}}job set {how[store.kind]} where id = {job_id}"
    if store.kind == "sqlite":
        store.sql("pragma ignore_check_constraints = on")
        store.sql(change)
        store.sql("pragma ignore_check_constraints = off")
        return
    [(text,)] = store.sql(
        "select pg_get_constraintdef(oid) from pg_constraint where conname = 'job_is_valid'"
        " and conrelid = '{s}job'::regclass"
    )
    text = text.removesuffix(" NOT VALID")
    store.sql(
        f"begin; alter table {{s}}job drop constraint job_is_valid; {change};"
        f" alter table {{s}}job add constraint job_is_valid {text} not valid; commit"
    )


def mend(store: StoreUnderTest, job_id: int, lost_attempts: int, max_attempts: int) -> None:
    """As a person would, where the row is now. Its arguments are empty again."""
    for table in ("job", "history"):
        store.sql(
            f"update {{s}}{table} set lost_attempts = {lost_attempts}, "
            f"max_attempts = {max_attempts}, args = '{{}}' where id = {job_id}"
        )


def steps_refused(store: StoreUnderTest, operation: int) -> AbstractContextManager[None]:
    """The database accepts no step of this bulk operation, whichever jobs it has."""
    return _refused(store, "bulk_step", f"number > 0 and operation = {operation}")


def cancels_refused(store: StoreUnderTest, queue: str) -> AbstractContextManager[None]:
    """The database accepts no canceled job of this queue."""
    return _refused(store, "history", f"state = 'canceled' and queue = '{queue}'")


@contextmanager
def _refused(store: StoreUnderTest, table: str, condition: str) -> Iterator[None]:
    """New rows of which this is true."""
    if store.kind == "postgres":
        refuse = (
            f"alter table {{s}}{table} add constraint refused_here "
            f"check (not ({condition})) not valid"
        )
        allow = f"alter table {{s}}{table} drop constraint refused_here"
    else:
        refuse = (
            f"create trigger refused_here before insert on {table} "
            f"when exists (select 1 from (select {_COLUMNS[table]}) where {condition}) "
            "begin select raise(abort, 'refused here'); end"
        )
        allow = "drop trigger refused_here"
    store.sql(refuse)
    try:
        yield
    finally:
        store.sql(allow)
