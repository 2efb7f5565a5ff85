"""The members of a flow, found by the ranges of their ids, and what is done to all of them.

No index contains members: a range was noted when they were stored. Ids of other jobs can be between
them, and differ by their policies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from freehold.model.flow import Flow
from freehold.model.job import Job, StopRequest
from freehold.model.operator_actions import (
    OperatorVerb,
    RequestStop,
    Transition,
    plan,
    plan_retry_with_flow,
)
from freehold.model.state import FINAL, State
from freehold.store import notifications
from freehold.store.rows import job_of
from freehold.store.statements import Verb, read, together
from freehold.store.types import MemberPage
from freehold.store.verbs.lanes import then_promote
from freehold.store.verbs.operator import change_statements
from freehold.store.verbs.operator import topics_of as topics_of

Ranges: TypeAlias = list[tuple[int, int]]

#: Members that one transaction changes.
MEMBERS = 200
LAST_ID = 2**63 - 1


def ranges_of(flow: int) -> Verb[Ranges]:
    """Without overlaps, in order."""
    rows = yield from read("flow_ranges", flow=flow)
    merged: Ranges = []
    for first, last in rows:
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def live_members(flow: int, ranges: Ranges, after: int, limit: int) -> Verb[list[Job]]:
    """Live members with larger ids, in order."""
    return (yield from _members("live_members", flow, ranges, after, limit))


def ended_members(
    flow: int, ranges: Ranges, after: int, limit: int, states: Sequence[State]
) -> Verb[list[Job]]:
    """Finished members with larger ids, in order."""
    names = sorted(states)
    return (yield from _members("ended_members", flow, ranges, after, limit, names))


def _members(
    statement: str,
    flow: int,
    ranges: Ranges,
    after: int,
    limit: int,
    states: Sequence[State] | None = None,
) -> Verb[list[Job]]:
    more: dict[str, Any] = {} if states is None else {"states": [state.value for state in states]}
    found: list[Job] = []
    for first, last in ranges:
        if last <= after:
            continue
        bounds: dict[str, Any] = {
            "first": max(first, after + 1),
            "last": last,
            "limit": limit - len(found),
        }
        rows = yield from read(statement, flow=str(flow), **bounds, **more)
        found += [job_of(row) for row in rows]
        if len(found) >= limit:
            break
    return found


def flow_members(
    flow: int, after: int = 0, limit: int = MEMBERS, states: Sequence[State] = ()
) -> Verb[MemberPage]:
    """A page of members in the order of their ids, live and finished ones. With a rare state it can
    be short, or empty, and still have a next one."""
    ranges = yield from ranges_of(flow)
    live = yield from live_members(flow, ranges, after, limit)
    wanted = [state for state in FINAL if not states or state in states]
    ended = yield from ended_members(flow, ranges, after, limit, wanted)
    # Beyond the last id that one of the reads has reached they cannot be merged.
    reached = min((page[-1].id for page in (live, ended) if len(page) >= limit), default=None)
    # A member that ended between the two reads is found twice: the later look is right.
    found = {job.id: job for job in (*live, *ended) if not states or job.state in states}
    jobs = [found[id_] for id_ in sorted(found) if reached is None or id_ <= reached]
    if len(jobs) > limit:
        jobs, reached = jobs[:limit], jobs[limit - 1].id
    return MemberPage(tuple(jobs), reached)


def cancel_page(flow: Flow, after: int) -> Verb[int]:
    """Cancel the next live members. Returns up to which id all are canceled, or asked to stop."""
    ranges = yield from ranges_of(flow.id)
    page = yield from live_members(flow.id, ranges, after, MEMBERS)
    if not page:
        return LAST_ID
    by, reason = flow.canceled_by or "freehold", f"{flow.kind} {flow.id} ({flow.name}) was canceled"
    if flow.cancel_reason:
        reason = f"{reason}: {flow.cancel_reason}"
    missed = yield from change_members(OperatorVerb.CANCEL, page, by, reason)
    return min(missed) - 1 if missed else page[-1].id


def change_members(
    verb: OperatorVerb, jobs: Sequence[Job], by: str, reason: str | None
) -> Verb[set[int]]:
    """Plan and write a verb for jobs. Returns those that have changed since they were read."""
    moves: list[tuple[Job, Transition | RequestStop]] = []
    stops: list[tuple[Job, Transition | RequestStop]] = []
    for job in jobs:
        if verb is OperatorVerb.CANCEL and _has_stopped(job):
            continue
        step = plan(verb, job)
        if isinstance(step, Transition):
            moves.append((job, step))
        elif isinstance(step, RequestStop):
            stops.append((job, step))
    left = {job.id for job, _ in (*moves, *stops)}
    if stops:
        (rows,) = yield from together(*change_statements(stops, by, reason))
        left -= {row[0] for row in rows}
    if moves:
        left -= yield from _move(moves, by, reason)
    return left


def retry_members(jobs: Sequence[Job], by: str, reason: str | None) -> Verb[set[int]]:
    """Of a flow that is retried as a whole. Returns those that have changed since they were
    read."""
    hit = yield from _move([(job, plan_retry_with_flow(job)) for job in jobs], by, reason)
    return {job.id for job in jobs} - hit


def _has_stopped(job: Job) -> bool:
    """A failed member that blocks its lane has ended; it is resolved by a person."""
    return job.state is State.FAILED or job.stop_request is StopRequest.CANCEL


def _move(
    moves: Sequence[tuple[Job, Transition | RequestStop]], by: str, reason: str | None
) -> Verb[set[int]]:
    jobs = [job for job, _ in moves]
    hit: set[int] = set()
    for kind in (True, False):  # live ones, then those of the history: the rows of one statement
        chosen = [(job, step) for job, step in moves if (job.stage is not None) is kind]
        if not chosen:
            continue
        statements = change_statements(chosen, by, reason)
        statements.append(notifications.notify_within(topics_of(jobs)))
        rows = yield from then_promote(
            statements,
            lanes=[job.target for job, _ in chosen],
            keys=[job.limit_key for job, _ in chosen],
        )
        hit |= {row[0] for row in rows if row[1]}
    return hit
