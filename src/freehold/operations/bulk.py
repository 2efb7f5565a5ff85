"""One verb on all jobs of a filter: preview, start, list, show, stop, resume.

    app.operator.bulk.start("retry", JobFilter(states=frozenset({State.FAILED})), by="ann")

Up to 100 jobs are changed by the call itself. A larger operation is carried out by the workers, in
steps, and goes on whichever of them ends.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from freehold.errors import BadInput, BulkNotFound, IllegalTransition
from freehold.model.audit import PYTHON
from freehold.model.bulk import (
    AT_ONCE,
    Amendment,
    BulkOperation,
    BulkPreview,
    BulkState,
    BulkVerb,
    check_bulk,
)
from freehold.operations.input_checks import LARGEST_ID, author_of, bound, check_filter
from freehold.store.statements import (
    AsyncMethods,
    AsyncSession,
    BlockingMethods,
    Session,
    Verb,
    method,
)
from freehold.store.types import PAGE_LIMIT, JobFilter
from freehold.store.verbs import bulk as bulk_verbs
from freehold.store.verbs import queries

P = ParamSpec("P")
T = TypeVar("T")


def preview(
    verb: BulkVerb | str, filter: JobFilter, changes: Amendment | None = None
) -> Verb[BulkPreview]:
    """What the verb would do with the jobs that match now, counted exactly, by cause."""
    chosen = _checked(verb, filter, changes)
    _, counts = yield from bulk_verbs.survey(chosen, filter, changes)
    return counts


def start(
    verb: BulkVerb | str,
    filter: JobFilter,
    changes: Amendment | None = None,
    *,
    by: str,
    reason: str | None = None,
    via: str = PYTHON,
) -> Verb[BulkOperation]:
    """Apply the verb to the jobs that match now, and to no others."""
    chosen, author = _checked(verb, filter, changes), author_of(by, via, reason)
    operation = yield from bulk_verbs.start(chosen, filter, changes, author)
    started = yield from show(operation)
    if started.jobs > AT_ONCE:
        return started
    while (yield from bulk_verbs.carry_out_step(operation)):
        pass
    return (yield from show(operation))


def _checked(verb: BulkVerb | str, filter: JobFilter, changes: Amendment | None) -> BulkVerb:
    check_filter(filter)
    try:
        chosen = BulkVerb(verb)
    except ValueError:
        verbs = ", ".join(BulkVerb)
        raise BadInput(f"{verb!r} is no verb of a bulk operation: give one of {verbs}") from None
    if filter == JobFilter(before=filter.before, limit=filter.limit):
        raise BadInput("give at least one field of the filter: this would reach every job")
    check_bulk(chosen, filter.states, changes)
    return chosen


def show(operation: int) -> Verb[BulkOperation]:
    """An operation and its progress."""
    known = type(operation) is int and 0 < operation <= LARGEST_ID
    found = (yield from bulk_verbs.operation(operation)) if known else None
    if found is None:
        raise BulkNotFound(
            f"there is no bulk operation {operation}: it never existed, or its retention has "
            "expired"
        )
    return found


def operations(before: int | None = None, limit: int = 50) -> Verb[list[BulkOperation]]:
    """Operations, newest first; ``before`` is the last id of the page before."""
    if not 1 <= limit <= PAGE_LIMIT:
        raise BadInput(f"limit={limit}: a page has 1 to {PAGE_LIMIT} operations")
    if before is not None and not 0 < before <= LARGEST_ID:
        raise BadInput(f"before={before}: give the last id of the page before")
    found = yield from bulk_verbs.operations(before, limit)
    return found


def stop(
    operation: int, *, by: str, reason: str | None = None, via: str = PYTHON
) -> Verb[BulkOperation]:
    """Stop a running operation: after this, no job is changed until it is resumed."""
    return (yield from _set_state(operation, BulkState.STOPPED, by, reason, via))


def resume(
    operation: int, *, by: str, reason: str | None = None, via: str = PYTHON
) -> Verb[BulkOperation]:
    """Continue a stopped operation with the jobs that it has not reached."""
    return (yield from _set_state(operation, BulkState.RUNNING, by, reason, via))


def _set_state(
    operation: int, state: BulkState, by: str, reason: str | None, via: str
) -> Verb[BulkOperation]:
    author = author_of(by, via, reason)
    found = yield from show(operation)
    verb, seen = (
        ("stop", BulkState.RUNNING) if state is BulkState.STOPPED else ("resume", BulkState.STOPPED)
    )
    done = yield from bulk_verbs.set_state(operation, seen, state, verb, author)
    found = yield from show(operation)
    if done:
        return found
    if found.state is not state:
        raise IllegalTransition(
            f"bulk operation {operation} is {found.state}: only a {seen} one can be {state}"
        )
    yield from queries.wait_for_standbys()
    return found


class _Bulk:
    preview = method(preview)
    start = method(start)
    show = method(show)
    list = method(operations)
    stop = method(stop)
    resume = method(resume)


class Bulk(_Bulk, BlockingMethods):
    """For callers that block."""

    def __init__(self, session: Session, via: str = PYTHON) -> None:
        super().__init__(session)
        self._via = via

    def _as_method(self, verb: Callable[P, Verb[T]]) -> Callable[P, T]:
        return super()._as_method(bound(verb, via=self._via))


class AsyncBulk(_Bulk, AsyncMethods):
    """The same for asyncio."""

    def __init__(self, session: AsyncSession, via: str = PYTHON) -> None:
        super().__init__(session)
        self._via = via

    def _as_method(self, verb: Callable[P, Verb[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        return super()._as_method(bound(verb, via=self._via))
