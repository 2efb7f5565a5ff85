"""What an operator does to a flow as a whole: cancel it, or run what did not succeed again."""

from __future__ import annotations

from collections.abc import Sequence

from freehold.errors import FlowNotFound, Refused
from freehold.model.audit import AuditKind, Author
from freehold.model.flow import Flow, FlowState
from freehold.model.job import Job
from freehold.model.operator_actions import OperatorVerb
from freehold.model.state import State
from freehold.store import notifications
from freehold.store.statements import Statement, Verb, together
from freehold.store.verbs import audit
from freehold.store.verbs.flow_members import (
    MEMBERS,
    change_members,
    ended_members,
    live_members,
    ranges_of,
)
from freehold.store.verbs.flows import read_flows

_UNSUCCESSFUL = (State.FAILED, State.CANCELED)


def flow_not_found(flow: int) -> FlowNotFound:
    return FlowNotFound(
        f"there is no batch or workflow {flow}: it never existed, or its retention has expired"
    )


def existing_flow(flow: int) -> Verb[Flow]:
    found = yield from read_flows([flow])
    if flow not in found:
        raise flow_not_found(flow)
    return found[flow]


def cancel_flow(flow: int, author: Author) -> Verb[bool]:
    """Cancel all members that have not ended: waiting ones soon, by a sweep; running ones are asked
    to stop. No member is added and no node is released from now on. False: it has ended, or was
    canceled before."""
    yield from existing_flow(flow)
    record = audit.of_setting(author, "cancel", AuditKind.FLOW, str(flow), {"canceled": True})
    cancel = Statement("cancel_flow", {"flow": flow, "by": author.by, "reason": author.reason})
    wake = notifications.notify_within([notifications.SCHEDULED])
    answers = yield from together(*record, cancel, wake)
    return bool(answers[len(record)])


def retry_flow(flow: int, author: Author) -> Verb[int]:
    """Run the members again that failed or were canceled. Returns how many. The flow is open again,
    and its callbacks that were not released can still come."""
    found = yield from existing_flow(flow)
    if found.state is FlowState.OPEN and found.canceled_at is not None:
        raise Refused(
            f"{found.kind} {flow} is being canceled: retry it when all its members have ended"
        )
    record = audit.of_setting(author, "retry", AuditKind.FLOW, str(flow), {"retried": True})
    yield from together(*record, Statement("reopen_flow", {"flow": flow}))
    return (yield from retry_members(flow, author.by, author.reason))


def retry_members(flow: int, by: str, reason: str | None) -> Verb[int]:
    ranges = yield from ranges_of(flow)
    retried, after = 0, 0
    while page := (yield from ended_members(flow, ranges, after, MEMBERS, _UNSUCCESSFUL)):
        retried += yield from _again(OperatorVerb.RETRY, page, by, reason)
        after = page[-1].id
    after = 0
    while page := (yield from live_members(flow, ranges, after, MEMBERS)):
        blocking = [job for job in page if job.state is State.FAILED]
        retried += yield from _again(OperatorVerb.RESUME, blocking, by, reason)
        after = page[-1].id
    return retried


def _again(verb: OperatorVerb, jobs: Sequence[Job], by: str, reason: str | None) -> Verb[int]:
    missed = yield from change_members(verb, jobs, by, reason)
    return len(jobs) - len(missed)
