"""The row of `transition`: a live job as it was read, and what becomes of it.

The ends of attempts and the actions of operators are both written this way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from freehold.model.history import EventKind
from freehold.model.policy import unpack
from freehold.model.state import Stage, State
from freehold.store.stage_sql import stage_byte
from freehold.store.statements import Statement

#: What most changes leave alone.
_UNCHANGED: dict[str, Any] = {
    "token": None,
    "owner": None,
    "expired": False,
    "stop_request": None,
    "delay_seconds": None,
    "keep_run_at": False,
    "fresh_attempts": False,
    "refund": 0,
    "lost_attempts": 0,
    "obeys": False,
    "error": None,
    "result": None,
    "ran_seconds": None,
    "waits_for": None,
    "keep_start_by": True,
    "late": False,
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
    assert changes.keys() <= _UNCHANGED.keys(), changes
    return {
        **_UNCHANGED,
        **changes,
        "id": job_id,
        "seen_stage": stage_byte(seen_stage),
        "leaves": stages is None,
        "state": state.value,
        "stage_due": stage_byte(stages[0]) if stages else None,
        "stage_later": stage_byte(stages[1]) if stages else None,
        "reason": reason,
        "event": event.value,
    }


def transition_statement(
    by: str | None, rows: Sequence[dict[str, Any]], policies: Iterable[str | None]
) -> Statement:
    """``policies``: those of the jobs. The policy of a plain job is null."""
    return Statement(in_flow("transition", policies), {"by": by}, rows)


def in_flow(name: str, policies: Iterable[str | None]) -> str:
    """The variant of a statement that also counts the ends of members of flows, if there are
    any."""
    is_member = any(each is not None and unpack(each).flow is not None for each in policies)
    return f"{name}_in_flow" if is_member else name


def gathers_left(ended: Iterable[tuple[int, str | None]]) -> list[Statement]:
    """Cancels what these jobs have gathered. They end, and not as succeeded; only jobs with steps
    can have gathered."""
    rows = [{"id": id_} for id_, policy in ended if policy is not None and unpack(policy).has_steps]
    return [Statement("cancel_gathers", {}, rows)] if rows else []
