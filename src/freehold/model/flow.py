"""Flows: sets of jobs whose ends release others. Batches, gathers, workflows, and groups of nodes.

    a member ends        -> its difference enters the worklist, in the transaction of the end
    the worklist is folded -> counters of the flow, states of nodes, counters of their followers
    what is due is acted upon -> nodes are released or canceled, callbacks stored, jobs woken

The rules here are pure. `fold_ends.sql` and `count_sources.sql` apply those over sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from freehold.errors import BadInput
from freehold.model.job import NewJob
from freehold.model.names import check_key
from freehold.model.state import State

#: Nodes of one workflow, and children of one gather.
NODES_LIMIT = 10_000
#: Results of all sources of a node, or of all children of a gather.
RESULTS_LIMIT = 1 << 20


class FlowKind(StrEnum):
    BATCH = "batch"
    GATHER = "gather"
    WORKFLOW = "workflow"
    GROUP = "group"  # the jobs of `flow.map`


class FlowState(StrEnum):
    OPEN = "open"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


class Moment(StrEnum):
    """When a callback is released."""

    SUCCESS = "success"
    FAILURE = "failure"
    END = "end"


class OnFailure(StrEnum):
    """What becomes of a node if one of its sources failed or was canceled."""

    CANCEL = "cancel"
    HOLD = "hold"
    RUN = "run"


class Fate(StrEnum):
    """What becomes of a node that waits."""

    WAIT = "wait"
    RUN = "run"
    CANCEL = "cancel"
    HOLD = "hold"  # it waits for an operator


class Counts(msgspec.Struct, frozen=True):
    """The members of a flow by how they have ended."""

    total: int
    succeeded: int = 0
    failed: int = 0
    canceled: int = 0

    @property
    def ended(self) -> int:
        return self.succeeded + self.failed + self.canceled

    @property
    def open(self) -> int:
        return self.total - self.ended


class Flow(msgspec.Struct, frozen=True):
    """A stored flow. `counts` are those of the last fold, a moment after the last end."""

    id: int
    kind: FlowKind
    name: str
    key: str | None
    state: FlowState
    counts: Counts
    created_at: datetime
    created_by: str | None
    #: None: a producer may still add members.
    sealed_at: datetime | None
    closed_at: datetime | None
    canceled_at: datetime | None
    canceled_by: str | None
    cancel_reason: str | None
    parent_job: int | None
    parent: int | None
    node: int | None


class NewFlow(msgspec.Struct, frozen=True, kw_only=True):
    """A checked request to store a flow. ``sealed``: its members are stored with it."""

    kind: FlowKind
    name: str
    key: str | None = None
    created_by: str | None = None
    sealed: bool = True
    parent_job: int | None = None
    callbacks: dict[Moment, NewJob] = {}


class NewNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node to be stored: a job, or the jobs of a group. ``sources``: the number of each source,
    with the parameter that gets its result, "" if none does."""

    number: int
    name: str
    job: NewJob | None = None
    jobs: tuple[NewJob, ...] = ()
    sources: tuple[tuple[int, str], ...] = ()
    on_failure: OnFailure = OnFailure.CANCEL


class NodeDraft(msgspec.Struct, frozen=True):
    """A node that a member adds: its sources by name, with the parameters that get their
    results."""

    name: str
    sources: tuple[tuple[str, str], ...]
    on_failure: OnFailure

    def node(self, flow: int, numbers: Mapping[str, int], job: NewJob) -> NewNode:
        """``numbers``: those of the nodes of the flow, by name. Raises BadInput."""
        if len(numbers) >= NODES_LIMIT:
            raise BadInput(f"workflow {flow} has {NODES_LIMIT:,} nodes, which is the limit")
        for name, _ in self.sources:
            if name not in numbers:
                known = ", ".join(list(numbers)[:10])
                raise BadInput(f"workflow {flow} has no node {name!r}: it has {known}")
        return NewNode(
            number=max(numbers.values(), default=0) + 1,
            name=self.name,
            job=job,
            sources=tuple(dict.fromkeys((numbers[name], to) for name, to in self.sources)),
            on_failure=self.on_failure,
        )


class FlowNode(msgspec.Struct, frozen=True):
    """A node of a workflow: a job, or the group of a map, with its own flow as ``part``."""

    flow: int
    number: int
    name: str
    job_id: int | None
    part: int | None
    on_failure: OnFailure
    #: None: it has not ended.
    state: State | None
    open_sources: int
    bad_sources: int
    #: Neither released nor ended.
    waits: bool
    sources: tuple[int, ...] = ()


class RestingFlow(msgspec.Struct, frozen=True):
    """A flow that waits for a person: a batch without a seal, or a workflow whose nodes hold, or
    whose retry was cut off."""

    flow: Flow
    held_nodes: int
    #: Maps whose members wait for the retry to go on.
    cut_off_nodes: int = 0


# -- counting -----------------------------------------------------------------------------------


def counted_as(state: State | None) -> FlowState:
    """How a member counts. None: it was deleted before it had ended."""
    match state:
        case State.SUCCEEDED:
            return FlowState.SUCCEEDED
        case State.FAILED:
            return FlowState.FAILED
        case State.CANCELED | None:
            return FlowState.CANCELED
    return FlowState.OPEN


def difference(before: State, after: State | None) -> Counts:
    """What a change of a member adds to the counters, with a total of zero. None: it is deleted; a
    member that had ended stays counted."""
    old = counted_as(before)
    new = old if after is None and old is not FlowState.OPEN else counted_as(after)
    return Counts(
        0,
        *(
            (new is state) - (old is state)
            for state in (FlowState.SUCCEEDED, FlowState.FAILED, FlowState.CANCELED)
        ),
    )


def state_of_flow(counts: Counts, *, sealed: bool, canceled: bool) -> FlowState:
    """A flow closes when no producer adds to it any more and all members have ended."""
    if not sealed or counts.open > 0:
        return FlowState.OPEN
    if counts.succeeded >= counts.total and (counts.total or not canceled):
        return FlowState.SUCCEEDED
    return FlowState.CANCELED if canceled else FlowState.FAILED


def moments_of(state: FlowState) -> tuple[Moment, ...]:
    """The callbacks that a flow in this state releases, unless they were released before."""
    match state:
        case FlowState.OPEN:
            return ()
        case FlowState.SUCCEEDED:
            return (Moment.SUCCESS, Moment.END)
    return (Moment.FAILURE, Moment.END)


def fate_of(open_sources: int, bad_sources: int, on_failure: OnFailure) -> Fate:
    """What becomes of a node. A failed source cancels it at once, if `on_failure` is CANCEL."""
    if bad_sources and on_failure is OnFailure.CANCEL:
        return Fate.CANCEL
    if open_sources:
        return Fate.WAIT
    if bad_sources and on_failure is OnFailure.HOLD:
        return Fate.HOLD
    return Fate.RUN


# -- checks -------------------------------------------------------------------------------------


def check_flow_name(name: object) -> str:
    return check_key("the name of a flow", name)


def check_member(job: Any, what: str) -> NewJob:
    """A job that can be a member or a callback of a flow."""
    if not isinstance(job, NewJob):
        raise BadInput(
            f"{what} got a {type(job).__name__}, not a prepared job: give task.prepare(...), which "
            "stores nothing, instead of task.enqueue(...)"
        )
    if job.unique_key or job.idempotency_key or job.waiting:
        raise BadInput(
            f"{what}: a job of {job.task} has a unique, idempotency or waiting key, and the job "
            "that holds it may be in no flow: leave the key out"
        )
    if job.pending:
        raise BadInput(f"{what}: a job of {job.task} is pending, and would never run")
    return job


def check_callbacks(given: Mapping[Moment, Any]) -> dict[Moment, NewJob]:
    callbacks = {
        moment: check_member(job, f"on_{moment}")
        for moment, job in given.items()
        if job is not None
    }
    for moment, job in callbacks.items():
        if isinstance(job.start_by, datetime):
            raise BadInput(
                f"on_{moment}: give start_by= of a callback as seconds, from the time when it is "
                "released"
            )
    return callbacks


def check_acyclic(names: Sequence[str], edges: Iterable[tuple[int, int]]) -> None:
    """``edges`` are (source, target), positions in ``names``. Raises BadInput with a cycle."""
    followers: dict[int, list[int]] = {}
    open_sources = dict.fromkeys(range(len(names)), 0)
    for source, target in set(edges):
        followers.setdefault(source, []).append(target)
        open_sources[target] += 1
    free = [number for number, count in open_sources.items() if not count]
    while free:
        number = free.pop()
        del open_sources[number]
        for follower in followers.get(number, ()):
            open_sources[follower] -= 1
            if not open_sources[follower]:
                free.append(follower)
    if open_sources:
        path = " -> ".join(names[number] for number in _cycle(followers, open_sources))
        raise BadInput(f"nodes that wait for each other would never run: {path}")


def _cycle(followers: Mapping[int, Sequence[int]], among: Mapping[int, int]) -> list[int]:
    """One cycle, with its first node again at the end."""
    sources = {
        target: source
        for source in among
        for target in followers.get(source, ())
        if target in among
    }
    seen: list[int] = []
    number = next(iter(among))
    while number not in seen:
        seen.append(number)
        number = sources[number]
    return [number, *seen[: seen.index(number) - 1 : -1]]
