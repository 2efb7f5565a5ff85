"""What operators and handlers do to a flow as a whole: cancel it, run what did not succeed again,
add to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import msgspec

from freehold.errors import FlowNotFound, Refused, StoreUnavailable
from freehold.model import suspension
from freehold.model.audit import AuditKind, Author
from freehold.model.flow import Flow, FlowKind, FlowNode, FlowState, NodeDraft
from freehold.model.history import EventKind
from freehold.model.job import Job, NewJob
from freehold.model.operator_actions import OperatorVerb
from freehold.model.state import Stage, State
from freehold.store import notifications
from freehold.store.stage_sql import stage_byte
from freehold.store.statements import Conflict, Statement, Verb, read, together
from freehold.store.types import LeaseKey
from freehold.store.verbs import audit
from freehold.store.verbs.act import act_on_flow
from freehold.store.verbs.flow_members import (
    MEMBERS,
    change_members,
    ended_members,
    flow_members,
    live_members,
    ranges_of,
    retry_members,
)
from freehold.store.verbs.flows import add_members, read_flows
from freehold.store.verbs.queries import read_jobs, wait_for_standbys
from freehold.store.verbs.workflows import add_nodes, flow_nodes

_TRIES = 20
#: Of the worklist of one flow: a retry decides by the states of all its members.
_ALL_ROWS = 2**31 - 1
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
    found = yield from existing_flow(flow)
    if found.state is not FlowState.OPEN or found.canceled_at is not None:
        yield from wait_for_standbys()
        return False
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
    if found.kind is FlowKind.WORKFLOW:
        return (yield from _retry_workflow(flow, author, record))
    yield from together(*record, Statement("reopen_flow", {"flow": flow}))
    return (yield from _retry_members(flow, author))


def _retry_workflow(flow: int, author: Author, record: Sequence[Statement]) -> Verb[int]:
    """Members of groups first, by pages, and nodes that block their lanes; then all other nodes, in
    one transaction. A node that followed a failed one would be canceled again by a sweep. First it
    is no longer canceled: a caller can die in between, and an open workflow that is canceled can be
    neither canceled nor retried."""
    yield from _check_key_is_free(flow)
    yield from together(Statement("reopen_flow", {"flow": flow}))
    retried = yield from _retry_groups(flow, author)
    retried += yield from _resume_members(flow, author)
    rows = [{"flow": flow}]
    params = {"flow": flow, "by": author.by, "reason": author.reason}
    statements = [
        *record,
        Statement("lock_flow", {"flow": flow}),
        Statement("fold_ends", {"limit": _ALL_ROWS}, rows),
        Statement("count_sources", {}, rows),
        Statement("restore_nodes", params),
        Statement("recount_sources", {"flow": flow}),
        notifications.notify_within([notifications.SCHEDULED]),
    ]
    try:
        answers = yield from together(*statements)
    except Conflict:
        yield from _check_key_is_free(flow)
        raise
    return retried + len(answers[len(record) + 3])


def _check_key_is_free(flow: int) -> Verb[None]:
    """Raises Refused if another open workflow has the key of this one."""
    key = (yield from existing_flow(flow)).key
    for (other,) in (yield from read("flow_by_key", key=key)) if key is not None else ():
        if other != flow:
            raise Refused(
                f"workflow {flow} cannot be retried: its key {key!r} now belongs to workflow "
                f"{other}; wait for that one, or cancel it"
            )


def _retry_groups(flow: int, author: Author) -> Verb[int]:
    """The workflow counts them as open afterwards. A group whose sources have not succeeded waits
    for them again."""
    nodes = yield from flow_nodes(flow)
    succeeded = {node.number for node in nodes if node.state is State.SUCCEEDED}
    retried = 0
    for node in nodes:
        if node.part is None or node.state in (None, State.SUCCEEDED):
            continue
        must_wait = not succeeded.issuperset(node.sources)
        retried += yield from _retry_group(node.part, author, must_wait=must_wait)
    return retried


def _retry_group(part: int, author: Author, *, must_wait: bool) -> Verb[int]:
    """The worklist of its workflow has its being open again afterwards. Waits for the fold of
    another worker, which could write the end that it has seen after the followers of this group are
    restored: they would be canceled again."""
    waits_for = suspension.sources(part) if must_wait else None
    retried = yield from _retry_members(part, author, waits_for)
    yield from together(
        Statement("reopen_group", {"flow": part, "must_wait": must_wait, "retried": retried > 0}),
        Statement("lock_flow", {"flow": part}),
        Statement("fold_ends", {"limit": _ALL_ROWS}, [{"flow": part}]),
    )
    yield from act_on_flow(part, [])
    return retried


def _retry_members(flow: int, author: Author, waits_for: str | None = None) -> Verb[int]:
    """``waits_for``: they wait for the sources of their group again."""
    ranges = yield from ranges_of(flow)
    retried, after = 0, 0
    while page := (yield from ended_members(flow, ranges, after, MEMBERS, _UNSUCCESSFUL)):
        if waits_for is None:
            missed = yield from retry_members(page, author.by, author.reason)
            retried += len(page) - len(missed)
        else:
            retried += yield from _wait_again(page, author, waits_for)
        after = page[-1].id
    return retried + (yield from _resume_members(flow, author))


def _resume_members(flow: int, author: Author) -> Verb[int]:
    """Those that failed and block their lanes."""
    ranges = yield from ranges_of(flow)
    resumed, after = 0, 0
    while page := (yield from live_members(flow, ranges, after, MEMBERS)):
        blocking = [job for job in page if job.state is State.FAILED]
        missed = yield from change_members(OperatorVerb.RESUME, blocking, author.by, author.reason)
        resumed += len(blocking) - len(missed)
        after = page[-1].id
    return resumed


def _wait_again(jobs: Sequence[Job], author: Author, waits_for: str) -> Verb[int]:
    rows = [
        {
            "id": job.id,
            "seen_state": job.state.value,
            "stage": stage_byte(Stage.PENDING),
            "event": EventKind.RETRIED_BY_HAND.value,
            "fresh_attempts": True,
            "waits_for": waits_for,
        }
        for job in jobs
    ]
    params = {"by": author.by, "reason": author.reason}
    (hit,) = yield from together(Statement("requeue_finished", params, rows))
    return len(hit)


def all_members(flow: int, states: Sequence[State]) -> Verb[list[Job]]:
    """All members in these states, in the order of their ids."""
    found: list[Job] = []
    after: int | None = 0
    while after is not None:
        page = yield from flow_members(flow, after, states=states)
        found += page.jobs
        after = page.next
    return found


def add_from_member(
    flow: int, jobs: Sequence[NewJob], owner: str, lease: LeaseKey
) -> Verb[list[int] | None]:
    """Add members from one that runs. None: its lease was lost. Raises Refused if the flow is
    canceled."""
    ids = yield from add_members(flow, jobs, owner, lease)
    if ids is None:
        yield from _check_not_canceled(flow)
    return ids


def add_node(
    flow: int, draft: NodeDraft, jobs: Sequence[NewJob], owner: str, lease: LeaseKey
) -> Verb[int | None]:
    """Add a node with its one job from one that runs. Returns the job, also that of an earlier
    call. None: the lease was lost. Raises Refused if the workflow is canceled. Numbers are drawn
    from what was read, and another addition may take them first."""
    for _ in range(_TRIES):
        nodes = {node.name: node for node in (yield from flow_nodes(flow))}
        if draft.name in nodes:
            return nodes[draft.name].job_id
        job = yield from _hiding_results(jobs[0], draft, nodes)
        new = draft.node(flow, {name: node.number for name, node in nodes.items()}, job)
        try:
            stored = yield from add_nodes(flow, [new], owner, lease)
        except Conflict:
            continue
        if stored is None:
            yield from _check_not_canceled(flow)
            return None
        return stored[new.number]
    raise StoreUnavailable(f"workflow {flow} kept changing while it was read: try again")


def _hiding_results(job: NewJob, draft: NodeDraft, nodes: Mapping[str, FlowNode]) -> Verb[NewJob]:
    """Results that are hidden are hidden as arguments too."""
    wanted = {to: nodes[name].job_id for name, to in draft.sources if to and name in nodes}
    found = yield from read_jobs([job_id for job_id in wanted.values() if job_id is not None])
    hidden = [to for to, id_ in wanted.items() if id_ in found and found[id_].policy.secret_result]
    names = tuple(dict.fromkeys((*job.policy.secret_args, *hidden)))
    policy = dataclasses.replace(job.policy, secret_args=names)
    return msgspec.structs.replace(job, policy=policy) if hidden else job


def _check_not_canceled(flow: int) -> Verb[None]:
    found = yield from existing_flow(flow)
    if found.canceled_at is not None:
        raise Refused(f"{found.kind} {flow} ({found.name}) is canceled: nothing was added")
