"""3. An attempt ends: persisted where the lease still holds, refused where it does not.

Endings by the owner and recoveries after an expiry are the same write, `settle`: decided in
Python, guarded by what was seen. Only the commonest ending, success, has a leaner statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from freehold.errors import BadInput
from freehold.model.job import Attempt, Request
from freehold.model.outcome import Decision, Outcome, OutcomeKind, decide, stage_after
from freehold.model.state import Stage
from freehold.store import notifications
from freehold.store.rows import attempt_of, json_text
from freehold.store.statements import Rows, Statement, Verb, read
from freehold.store.types import AttemptEnd, Finished, Recovered
from freehold.store.verbs.lanes import then_promote
from freehold.store.verbs.transition import transition_row

_FOR_OTHERS = frozenset({OutcomeKind.GIVE_BACK, OutcomeKind.DRAIN})


def finish(owner: str, ended: Sequence[AttemptEnd]) -> Verb[Finished]:
    _check_one_each(ended)
    decisions: dict[int, Decision] = {}
    good = [end for end in ended if end.outcome.kind is OutcomeKind.SUCCESS]
    rest = [end for end in ended if end.outcome.kind is not OutcomeKind.SUCCESS]
    if good:
        hit = yield from _succeed(owner, good)
        decisions.update(
            (end.attempt.job_id, decide(end.attempt, end.outcome, None, 0.0))
            for end in good
            if end.attempt.job_id in hit
        )
    if rest:
        decisions.update((yield from _transition(owner, rest, expired=False)))
    lost = tuple(end.attempt.job_id for end in ended if end.attempt.job_id not in decisions)
    return Finished(decisions, lost)


def _check_one_each(ended: Sequence[AttemptEnd]) -> None:
    """Answers are by job: of two endings of one, nobody could tell which was accepted."""
    if len({end.attempt.job_id for end in ended}) < len(ended):
        raise BadInput("two endings of one job in a call: finish them one after the other")


def release(owner: str, attempts: Sequence[Attempt]) -> Verb[Finished]:
    outcome = Outcome(kind=OutcomeKind.GIVE_BACK, reason="given back before it started")
    answer = yield from finish(owner, [AttemptEnd(attempt, outcome) for attempt in attempts])
    return answer


def recover(limit: int, chance: float) -> Verb[list[Recovered]]:
    """Read what has expired without locks, decide, and write what is still expired."""
    rows = yield from read("expired", limit=limit)
    if not rows:
        return []
    outcome = Outcome(kind=OutcomeKind.LOST_LEASE)
    ended = [
        AttemptEnd(
            attempt_of(row, row[13]),
            outcome,
            Request(row[14]) if row[14] else None,
            _spread(chance, index),
        )
        for index, row in enumerate(rows)
    ]
    decisions = yield from _transition(None, ended, expired=True)
    return [
        Recovered(end.attempt, decisions[end.attempt.job_id])
        for end in ended
        if end.attempt.job_id in decisions
    ]


def _spread(chance: float, index: int) -> float:
    """One draw, spread over a batch by the golden ratio: jobs lost together return apart."""
    return (chance + index * 0.618033988749895) % 1.0


def _succeed(owner: str, ended: Sequence[AttemptEnd]) -> Verb[set[int]]:
    rows = [
        {
            "id": end.attempt.job_id,
            "token": end.attempt.token,
            "result": None if end.outcome.result is None else end.outcome.result.decode(),
            "ran_seconds": end.outcome.ran_seconds,
        }
        for end in ended
    ]
    statement = Statement("succeed", {"owner": owner}, rows)
    hit = yield from _write_and_free(statement, ended)
    return {row[0] for row in hit}


def _transition(
    owner: str | None, ended: Sequence[AttemptEnd], *, expired: bool
) -> Verb[dict[int, Decision]]:
    """Decide and write; decide again for those that were asked something else meanwhile."""
    settled: dict[int, Decision] = {}
    waiting = {end.attempt.job_id: end for end in ended}
    while waiting:
        decisions = {
            job_id: decide(end.attempt, end.outcome, end.request, end.chance)
            for job_id, end in waiting.items()
        }
        rows = [
            _ended_row(end.attempt, decisions[job_id], end.request, owner=owner, expired=expired)
            for job_id, end in waiting.items()
        ]
        statement = Statement("settle", {"by": owner}, rows)
        answers = yield from _write_and_free(
            statement, waiting.values(), _given_up(waiting.values())
        )
        waiting, asked = {}, waiting
        for job_id, hit, leased_as_seen, request in answers:
            if hit:
                settled[job_id] = decisions[job_id]
            elif leased_as_seen:
                end = asked[job_id]
                seen = Request(request) if request else None
                waiting[job_id] = AttemptEnd(end.attempt, end.outcome, seen, end.chance)
    return settled


def _ended_row(
    attempt: Attempt,
    decision: Decision,
    request: Request | None,
    *,
    owner: str | None,
    expired: bool,
) -> dict[str, Any]:
    """A leased row as it was seen, and what becomes of it.

    ``owner`` is who writes, which an attempt cannot vouch for; None: a recovery, which goes by
    the owner that it read.
    """
    return transition_row(
        attempt.job_id,
        Stage.HELD,
        state=decision.state,
        event=decision.event,
        stages=stage_after(decision, attempt),
        reason=decision.reason,
        token=attempt.token,
        owner=attempt.owner if owner is None else owner,
        expired=expired,
        request=None if request is None else request.value,
        delay_seconds=decision.delay_seconds,
        refund=int(decision.refund),
        lost=int(decision.lost),
        obeys=decision.obeys,
        error=json_text(decision.error),
        result=None if decision.result is None else decision.result.decode(),
        ran_seconds=decision.ran_seconds,
    )


def _given_up(ended: Iterable[AttemptEnd]) -> set[str]:
    """Queues whose jobs this worker hands to the others: they should hear of it."""
    return {end.attempt.queue for end in ended if end.outcome.kind in _FOR_OTHERS}


def _write_and_free(
    statement: Statement, ended: Iterable[AttemptEnd], queues: Iterable[str] = ()
) -> Verb[Rows]:
    """Endings free lanes and limits: whoever waited for them can go on."""
    statements = [statement]
    if queues:
        statements.append(
            notifications.notify_within(notifications.queue_ready(queue) for queue in queues)
        )
    rows = yield from then_promote(
        statements,
        lanes=[end.attempt.target for end in ended],
        keys=[end.attempt.limit_key for end in ended],
    )
    return rows
