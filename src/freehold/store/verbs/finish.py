"""Finishing: the end of an attempt is written where the lease still holds, refused where it does
not.

An end by the owner and a recovery after an expiry are the same write, `transition`: decided in
Python, guarded by what was read. Only the commonest end, success, has a leaner statement.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec

from freehold.errors import BadInput, StoreError
from freehold.model.job import Attempt, StopRequest
from freehold.model.outcome import (
    NEVER_STARTED,
    SUCCEEDED,
    Decision,
    Outcome,
    OutcomeKind,
    decide,
    stage_after,
)
from freehold.model.state import FINAL, Stage
from freehold.model.suspension import lock_of
from freehold.store import notifications
from freehold.store.rows import json_text
from freehold.store.statements import Rows, Statement, StatementGroup, Verb, write
from freehold.store.types import AttemptEnd, Finished, LogChunk
from freehold.store.verbs.job_log import append_log
from freehold.store.verbs.lanes import then_promote
from freehold.store.verbs.transition import (
    gathers_left,
    transition_row,
    transition_statement,
)

#: Server-side timeout for the commit that follows: only COMMIT is left to be sent.
COMMIT_SECONDS = 5.0
_FOR_OTHERS = frozenset({OutcomeKind.GIVE_BACK, OutcomeKind.DRAIN})


def finish(owner: str, ended: Sequence[AttemptEnd]) -> Verb[Finished]:
    """Write the ends of attempts, where the lease still holds. A stop request that came after the
    worker's last read is obeyed as decide() decides. One end of a job in a call."""
    # Results are by job: of two ends of one job it would be unclear which was accepted.
    if len({end.attempt.job_id for end in ended}) < len(ended):
        raise BadInput("two ends of one job in a call: finish them one after the other")
    decisions: dict[int, Decision] = {}
    flows: tuple[int, ...] = ()
    good = [end for end in ended if end.outcome.kind is OutcomeKind.SUCCESS]
    if good:
        ids, flows = yield from _succeed(owner, good)
        decisions.update(dict.fromkeys(ids, SUCCEEDED))
    if len(good) < len(ended):
        rest = [end for end in ended if end.outcome.kind is not OutcomeKind.SUCCESS]
        decisions.update((yield from end_attempts(owner, rest, expired=False)))
        flows += flows_of(rest)
    if len(decisions) == len(ended):
        return Finished(decisions, (), flows)
    lost = tuple(end.attempt.job_id for end in ended if end.attempt.job_id not in decisions)
    return Finished(decisions, lost, flows)


def give_back(owner: str, attempts: Sequence[Attempt]) -> Verb[Finished]:
    """Return jobs that never started to the queue; no attempt is counted."""
    outcome = Outcome(kind=OutcomeKind.GIVE_BACK, reason="returned to the queue before it started")
    answer = yield from finish(owner, [AttemptEnd(attempt, outcome) for attempt in attempts])
    return answer


def finish_within(owner: str, ended: AttemptEnd, log: LogChunk | None) -> Verb[bool]:
    """Finish inside the handler's own transaction, whose owner commits both together. False: the
    lease was lost, and the transaction must be rolled back."""
    yield from write("set_commit_timeout", milliseconds=str(round(COMMIT_SECONDS * 1000)))
    if log is not None:
        yield from append_log(owner, [log])
    finished = yield from finish(owner, [ended])
    return ended.attempt.job_id in finished.decisions


def _succeed(owner: str, ended: Sequence[AttemptEnd]) -> Verb[tuple[list[int], tuple[int, ...]]]:
    """Returns the jobs whose lease held, and the flows of all: an end is folded also if an earlier
    try has written it and its response was lost."""
    rows = [
        {
            "id": end.attempt.job_id,
            "token": end.attempt.token,
            "result": None if end.outcome.result is None else end.outcome.result.decode(),
            "ran_seconds": end.outcome.ran_seconds,
        }
        for end in ended
    ]
    # The policy of a plain job is null.
    special = [end for end in ended if end.attempt.policy_json is not None]
    flows, waited_for = (flows_of(special), _waited_for(special)) if special else ((), [])
    statement = Statement("succeed_in_flow" if flows else "succeed", {"owner": owner}, rows)
    hit = yield from _write_and_free(statement, ended, waited_for=waited_for)
    return [job_id for (job_id,) in hit], flows


def flows_of(ended: Iterable[AttemptEnd]) -> tuple[int, ...]:
    """The flows that these are members of."""
    policies = (end.attempt.policy for end in ended if end.attempt.policy_json is not None)
    return tuple({policy.flow: None for policy in policies if policy.flow is not None})


def end_attempts(
    owner: str | None, ended: Sequence[AttemptEnd], *, expired: bool
) -> Verb[dict[int, Decision]]:
    """Decide and write; decide again where a stop request came meanwhile."""
    settled: dict[int, Decision] = {}
    unsettled = {end.attempt.job_id: end for end in ended}
    while unsettled:
        decisions = {
            job_id: decide(end.attempt, end.outcome, end.request, end.chance)
            for job_id, end in unsettled.items()
        }
        rows = [
            _ended_row(end, decisions[job_id], owner=owner, expired=expired)
            for job_id, end in unsettled.items()
        ]
        policies = [end.attempt.policy_json for end in unsettled.values()]
        statement = transition_statement(owner, rows, policies)
        answers = yield from _write_and_free(
            statement,
            unsettled.values(),
            _returned_to_others(unsettled.values()),
            _waited_for(end for id_, end in unsettled.items() if decisions[id_].state in FINAL),
            _locks_of_waits(decisions.values()),
            gathers_left(
                (id_, end.attempt.policy_json)
                for id_, end in unsettled.items()
                if decisions[id_].state in FINAL
            ),
        )
        unsettled, asked = {}, unsettled
        for job_id, hit, leased_as_seen, request, by, reason in answers:
            if hit:
                settled[job_id] = _as_written(decisions[job_id], by, reason)
            elif leased_as_seen:
                end = asked[job_id]
                seen = StopRequest(request) if request else None
                unsettled[job_id] = AttemptEnd(end.attempt, end.outcome, seen, end.chance)
    return settled


def _as_written(decision: Decision, by: str | None, reason: str | None) -> Decision:
    if not decision.obeys:
        return decision
    return msgspec.structs.replace(decision, requested_by=by, reason=reason)


def _ended_row(
    end: AttemptEnd, decision: Decision, *, owner: str | None, expired: bool
) -> dict[str, Any]:
    """A leased row as it was read, and what becomes of it.

    ``owner`` is the writing worker; None: a recovery, which is fenced by the owner that it read.
    """
    attempt, request = end.attempt, end.request
    return transition_row(
        attempt.job_id,
        Stage.LEASED,
        state=decision.state,
        event=decision.event,
        stages=stage_after(decision, attempt),
        reason=decision.reason,
        token=attempt.token,
        owner=attempt.owner if owner is None else owner,
        expired=expired,
        stop_request=None if request is None else request.value,
        delay_seconds=decision.delay_seconds,
        keep_run_at=decision.parks,
        refund=int(decision.refund),
        lost_attempts=int(decision.lost),
        obeys=decision.obeys,
        error=json_text(decision.error),
        ran_seconds=decision.ran_seconds,
        waits_for=decision.waits_for,
        # A worker that is lost may have begun the job.
        keep_start_by=end.outcome.kind in NEVER_STARTED,
    )


def _returned_to_others(ended: Iterable[AttemptEnd]) -> set[str]:
    """Queues whose jobs return to other workers, which are notified."""
    return {end.attempt.queue for end in ended if end.outcome.kind in _FOR_OTHERS}


def _waited_for(ended: Iterable[AttemptEnd]) -> list[int]:
    """Jobs whose enqueuer waits for their end. The policy of a plain job is null."""
    return [
        end.attempt.job_id
        for end in ended
        if end.attempt.policy_json is not None and end.attempt.policy.notify_end
    ]


def _locks_of_waits(decisions: Iterable[Decision]) -> list[Statement]:
    """Taken before jobs are suspended that wait for signals, or for what they gathered: see
    `verbs/signals.py`."""
    names = {lock_of(each.waits_for) for each in decisions if each.waits_for is not None} - {None}
    return [Statement("lock_signals", {}, [{"name": name} for name in names])] if names else []


def _write_and_free(
    statement: Statement,
    ended: Collection[AttemptEnd],
    queues: Iterable[str] = (),
    waited_for: Sequence[int] = (),
    preceded_by: Sequence[Statement] = (),
    followed_by: Sequence[Statement] = (),
) -> Verb[Rows]:
    """Ends free lanes and limits: the jobs that waited for them become ready. Callers that wait for
    jobs are notified after the commit, of all of them together."""
    statements = [statement, *followed_by]
    if queues:
        statements.append(
            notifications.notify_within(notifications.queue_topic(queue) for queue in queues)
        )
    lanes = {end.attempt.target for end in ended} - {None}
    keys = {end.attempt.limit_key for end in ended} - {None}
    notification = notifications.notify_ended(waited_for) if waited_for else None
    if not lanes and not keys:
        group = StatementGroup((*preceded_by, *statements), True, notification)
        return (yield group)[len(preceded_by)]
    rows = yield from then_promote(statements, lanes=lanes, keys=keys, preceded_by=preceded_by)
    if notification is not None:
        with contextlib.suppress(StoreError):  # the ends are written: only a hint is lost
            yield StatementGroup((notification,), writes=False)
    return rows
