"""Attempts and jobs for tests of the pure rules, with defaults for every field."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from freehold.model.job import Attempt, Job, Lease
from freehold.model.policy import Policy, pack
from freehold.model.state import Stage, State, state_of

T0 = datetime(2027, 1, 15, 8, tzinfo=UTC)
#: Stages that only a row with a target can have: a constraint of the table.
ONLY_IN_LANES = frozenset(
    {Stage.LANE_HEAD, Stage.FOLLOWER, Stage.BACKOFF, Stage.PAUSED_FOLLOWER, Stage.FAILED}
)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def policy_json(policy: Policy) -> str | None:
    packed = pack(policy)
    return None if packed is None else msgspec.json.encode(packed).decode()


def an_attempt(policy: Policy | None = None, **fields: Any) -> Attempt:
    defaults: dict[str, Any] = {
        "job_id": 1,
        "owner": "w1",
        "token": 1,
        "task": "t",
        "queue": "default",
        "args": "{}",
        "number": 1,
        "max_attempts": 3,
        "lost_attempts": 0,
        "priority": 0,
        "target": None,
        "timeout_seconds": None,
        "policy_json": policy_json(policy or Policy()),
    }
    return Attempt(**{**defaults, **fields})


def a_lease(**fields: Any) -> Lease:
    defaults: dict[str, Any] = {
        "owner": "w1",
        "token": 1,
        "expires_at": at(30),
        "leased_at": T0,
        "heartbeat_at": T0,
        "started_at": None,
    }
    return Lease(**{**defaults, **fields})


def a_job(stage: Stage | None = Stage.READY, **fields: Any) -> Job:
    """A live job, or, with ``stage=None`` and a ``state``, a finished one."""
    started = fields.pop("started", False)
    lease = a_lease(started_at=at(1) if started else None) if stage is Stage.LEASED else None
    state = State.SUCCEEDED if stage is None else state_of(stage, started)
    defaults: dict[str, Any] = {
        "id": 7,
        "task": "t",
        "queue": "default",
        "state": state,
        "stage": stage,
        "priority": 0,
        "args": "{}",
        "attempt": 0,
        "max_attempts": 3,
        "lost_attempts": 0,
        "target": None,
        "limit_key": None,
        "unique_key": None,
        "tags": (),
        "timeout_seconds": None,
        "policy_json": None,
        "created_at": T0,
        "run_at": T0,
        "stop_request": None,
        "stop_requested_by": None,
        "stop_request_reason": None,
        "reason": None,
        "lease": lease,
        "report": None,
    }
    return Job(**{**defaults, **fields})
