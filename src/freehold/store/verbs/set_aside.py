"""Setting aside: a row that claims or sweeps cannot write costs itself, and not its queue.

Statements work on sets, so that one row with a value out of range fails the claims of its queue, or
all sweeps. After such an error the rows are tried in halves, in transactions that are rolled back,
until those that fail alone are found. They are paused, with the error as their reason: a person can
correct or cancel them, and their lane keeps its order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from freehold.errors import RowRefused
from freehold.model.history import EventKind
from freehold.model.operator_actions import paused_stage
from freehold.model.state import Stage, State
from freehold.store.stage_sql import stage_byte, stage_of
from freehold.store.statements import Statement, Verb, read, trial
from freehold.store.types import SetAside
from freehold.store.verbs.lanes import then_promote
from freehold.store.verbs.transition import transition_row

#: As many as the largest claim examines at first; the row that is refused can be further behind.
_ROWS = 1000
_PAGES = 100
#: What becomes of rows in claims and sweeps, and whether an attempt is counted.
_TRIED = ((Stage.READY, 0), (Stage.LEASED, 1), (Stage.PARKED, 0), (Stage.LIMITED, 0))


class TriedRow(NamedTuple):
    """A row as it was read, with what guards its change."""

    id: int
    stage: str
    target: str | None
    token: int | None
    owner: str | None
    stop_request: str | None


def set_aside_ready(queue: str) -> Verb[list[SetAside]]:
    """After `RowRefused` from a claim: pause the ready jobs of the queue that no claim can write,
    and only those. A job that another transaction has locked is left alone."""
    return (yield from _first_refused("ready_rows", queue=queue))


def set_aside_swept() -> Verb[list[SetAside]]:
    """The same after `RowRefused` from a sweep: expired leases, due jobs, and jobs that wait for a
    limit, a lane or a worker. A live lease is left alone."""
    return (yield from _first_refused("sweep_rows"))


def set_aside_stalled(
    job_id: int, stage: str, target: str, error: RowRefused
) -> Verb[list[SetAside]]:
    """The same for the next job of a lane without a holder, whose promotion was refused."""
    return (yield from _set_aside(TriedRow(job_id, stage, target, None, None, None), error))


def _first_refused(name: str, **params: Any) -> Verb[list[SetAside]]:
    """Of the first page that has such rows."""
    for page in range(_PAGES):
        rows = yield from read(name, limit=_ROWS, offset=page * _ROWS, **params)
        found = yield from _set_aside_refused([TriedRow._make(row) for row in rows])
        if found or not rows:
            return found
    return []


def _set_aside_refused(rows: list[TriedRow]) -> Verb[list[SetAside]]:
    found: list[SetAside] = []
    refused = yield from _refused(rows)
    for row, error in refused:
        found += yield from _set_aside(row, error)
    return found


def _set_aside(row: TriedRow, error: RowRefused) -> Verb[list[SetAside]]:
    """Empty if the row has changed since it was read."""
    reason = str(error)
    try:
        written = yield from _write(row, _paused(row, reason))
    except RowRefused:
        # It breaks a constraint that is younger than the row: only the history accepts it.
        written = yield from _write(row, _failed(row, reason))
    return [SetAside(row.id, reason)] if written else []


def _write(row: TriedRow, change: dict[str, Any]) -> Verb[bool]:
    # Whether it is a member of a flow was not read.
    statement = Statement("transition_in_flow", {"by": None}, [change])
    hits = yield from then_promote([statement], lanes=[row.target])
    return any(hit for _, hit, *_ in hits)


def _refused(rows: list[TriedRow]) -> Verb[list[tuple[TriedRow, RowRefused]]]:
    """The rows that fail alone, with their errors."""
    if not rows:
        return []
    ids = [{"id": row.id} for row in rows]
    try:
        yield from trial(
            *(
                Statement("try_rows", {"stage": stage_byte(stage), "counted": counted}, ids)
                for stage, counted in _TRIED
            )
        )
    except RowRefused as error:
        if len(rows) == 1:
            return [(rows[0], error)]
        half = len(rows) // 2
        first = yield from _refused(rows[:half])
        second = yield from _refused(rows[half:])
        return first + second
    return []


def _paused(row: TriedRow, reason: str) -> dict[str, Any]:
    stage = paused_stage(stage_of(row.stage), has_lane=row.target is not None)
    return _change(row, State.PAUSED, EventKind.PAUSED, (stage, stage), reason)


def _failed(row: TriedRow, reason: str) -> dict[str, Any]:
    return _change(row, State.FAILED, EventKind.FAILED, None, reason)


def _change(
    row: TriedRow, state: State, event: EventKind, stages: tuple[Stage, Stage] | None, reason: str
) -> dict[str, Any]:
    """Guarded by what was read: a row that was claimed meanwhile, or a live lease, stays."""
    stage = stage_of(row.stage)
    return transition_row(
        row.id,
        stage,
        state=state,
        event=event,
        stages=stages,
        reason=reason,
        token=row.token,
        owner=row.owner,
        expired=stage is Stage.LEASED,
        stop_request=row.stop_request,
        keep_run_at=True,
        keep_start_by=False,  # it waits for a person, and no sweep could cancel it
    )
