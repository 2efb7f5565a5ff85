"""Steps: what parts of a handler have returned, stored under its lease."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from freehold.model.step import Step, StepKind
from freehold.model.timestamps import maybe_time, time_of
from freehold.store.statements import Verb, read, write
from freehold.store.types import LeaseKey, NewStep
from freehold.store.verbs.finish import COMMIT_SECONDS


def put_steps(owner: str, steps: Sequence[NewStep]) -> Verb[tuple[LeaseKey, ...]]:
    """Store steps. Returns the leases that were lost: nothing of them was stored. Repeating a write
    is safe: a step that exists stays as it is."""
    answers = yield from write("put_steps", list(map(_row, steps)), owner=owner)
    held = {LeaseKey(job_id, token) for job_id, token, _ in answers}
    return tuple(dict.fromkeys(step.lease for step in steps if step.lease not in held))


def put_step_within(owner: str, step: NewStep) -> Verb[bool]:
    """Store a step inside the handler's own transaction, whose owner commits both together. False:
    the lease was lost, or the step exists already, and the transaction must be rolled back. It
    exists if it was committed before and the result of that commit was lost."""
    yield from write("set_commit_timeout", milliseconds=str(round(COMMIT_SECONDS * 1000)))
    answers = yield from write("put_steps", [_row(step)], owner=owner)
    return any(added for _, _, added in answers)


def _row(step: NewStep) -> dict[str, Any]:
    return {
        "id": step.lease.job_id,
        "token": step.lease.token,
        "name": step.name,
        "number": step.number,
        "kind": step.kind.value,
        "seconds": step.seconds,
        "value": None if step.value is None else step.value.decode(),
        "hidden": step.hidden,
    }


def read_steps(job_id: int) -> Verb[list[Step]]:
    """The steps of a job, in the order in which they were written."""
    rows = yield from read("read_steps", id=job_id)
    return [
        Step(
            name,
            number,
            StepKind(kind),
            token,
            time_of(at),
            maybe_time(until),
            value,
            bool(hidden),
            None if left is None else float(left),
        )
        for name, number, kind, token, at, until, value, hidden, left in rows
    ]
