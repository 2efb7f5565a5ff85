"""The row of `settle`: a live job as it was seen, and what becomes of it. Both the endings of
attempts and the moves of operators are written so."""

from __future__ import annotations

from typing import Any

from freehold.model.history import EventKind
from freehold.model.state import Stage, State

#: What most changes leave alone.
_UNCHANGED: dict[str, Any] = {
    "token": None,
    "owner": None,
    "expired": False,
    "request": None,
    "delay_seconds": None,
    "keep_run_at": False,
    "fresh_attempts": False,
    "refund": 0,
    "lost": 0,
    "obeys": False,
    "error": None,
    "result": None,
    "ran_seconds": None,
}


def transition_row(
    job_id: int,
    seen_stage: Stage,
    *,
    state: State,
    event: EventKind,
    stages: tuple[Stage, Stage] | None,
    reason: str | None,
    **changes: Any,
) -> dict[str, Any]:
    """``stages`` is (if due, if due later), or None: into history. ``changes`` are columns of the
    statement beside those that every change has."""
    unknown = changes.keys() - _UNCHANGED.keys()
    assert not unknown, unknown
    return {
        **_UNCHANGED,
        **changes,
        "id": job_id,
        "seen_stage": seen_stage.value,
        "leaves": stages is None,
        "state": state.value,
        "stage_due": stages[0].value if stages else None,
        "stage_later": stages[1].value if stages else None,
        "reason": reason,
        "event": event.value,
    }
