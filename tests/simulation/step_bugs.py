"""The same for steps, sleeps and signals."""

from __future__ import annotations

from typing import Any

from freehold.model import outcome
from freehold.model.outcome import Decision
from freehold.model.state import Stage
from freehold.store.verbs import finish
from freehold.worker.execution.fenced_transaction import FencedTransactions
from freehold.worker.execution.step_transaction import StepTransaction
from freehold.worker.execution.steps import AttemptSteps
from tests.simulation.bugs import Bug, Plant, code, sql

_OWNED = "lease_token = :token and lease_owner = :owner and "
_UNEXPIRED = "\n    and lease_expires_at > clock()"


async def _step_after_the_commit(self: StepTransaction) -> None:
    await self._async_transaction.commit()
    step = self._steps.new_step(self._name)
    await self._steps._store.write(self._lease, step)


def _behind_others(decision: Decision, attempt: Any) -> tuple[Stage, Stage] | None:
    """A suspended job leaves the head of its lane."""
    stages = _stage_after(decision, attempt)
    is_in_lane = decision.waits_for is not None and attempt.target is not None
    return (Stage.FOLLOWER, Stage.SCHEDULED) if is_in_lane else stages


_stage_after = outcome.stage_after


def _goes_on(_transactions: FencedTransactions, _lease: Any) -> None:
    """The attempt stores its error."""


def _over(self: AttemptSteps, found: Any, seconds: float) -> float:
    return seconds if found is None else 0.0


_REFUND = "else attempt - :refund end"
_BUGS: dict[str, tuple[Plant, tuple[int, ...]]] = {
    "a step is written by any owner": (
        sql(("put_steps", _OWNED, ""), ("put_steps", _UNEXPIRED, "")),
        (98,),
    ),
    "a step is written after the lease ended": (sql(("put_steps", _UNEXPIRED, "")), (78,)),
    "the value of a step changes": (
        sql(
            ("put_steps", "insert or ignore", "insert or replace"),
            ("read_steps", "where job_id", "where 0 and job_id"),
        ),
        (18,),
    ),
    "a job is not marked when it has steps": (
        sql(
            *(
                (name, "json_extract(policy, '$.steps') is null", "0")
                for name in ("put_steps", "await_signal")
            )
        ),
        (18,),
    ),
    "a step is stored after its transaction": (
        code(StepTransaction, "_afinish", _step_after_the_commit),
        (98,),
    ),
    "an attempt goes on after a commit without a known outcome": (
        code(FencedTransactions, "step_unknown", _goes_on),
        (450,),
    ),
    "a suspension is charged": (
        sql(
            (
                "transition",
                _REFUND,
                _REFUND.replace(":refund", "(:refund and :event <> 'suspended')"),
            )
        ),
        (18,),
    ),
    "a suspended job does not hold its lane": (code(finish, "stage_after", _behind_others), (18,)),
    "a sleep that has begun counts as over": (code(AttemptSteps, "_left", _over), ()),
    "a signal between the wait and the suspension is lost": (
        sql(("transition", "where s.name = substr(:waits_for, 8)", "where 0")),
        (18,),
    ),
    "a signal wakes no job": (
        sql(("deliver_signals", "where waits_for = ", "where 0 and waits_for = ")),
        (98,),
    ),
    "a later value of a signal replaces the first": (
        sql(("send_signal", "where signal.expires_at <= excluded.at", "where 1")),
        (18,),
    ),
    "a wait that is over does not look for its signal": (
        sql(("await_signal", "excluded.kind <> 'signal' and ", "")),
        (54,),
    ),
}
STEP_BUGS = {name: Bug(name, plant, seeds) for name, (plant, seeds) in _BUGS.items()}
