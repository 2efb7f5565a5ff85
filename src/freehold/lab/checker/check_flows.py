"""N11, N12: the counters of flows are right, callbacks come once, and nothing starts too early."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from freehold.lab.checker.evidence import FlowEvidence
from freehold.lab.checker.indexed_history import IndexedHistory
from freehold.lab.checker.job_intervals import (
    JobIntervals,
    is_canceled_by_the_queue,
    live_spans,
)
from freehold.lab.checker.violation import Violation
from freehold.model.flow import FlowNode, FlowState, Moment, OnFailure
from freehold.model.history import EventKind
from freehold.model.state import State
from freehold.model.timestamps import micros_of

_ENDED = (State.SUCCEEDED, State.FAILED, State.CANCELED)


def child_prefix(job_id: int, step: str, tenant: str | None = None) -> str:
    """In front of the number of a child, in the call of a job that was gathered."""
    return f"{tenant}:{step} of {job_id}/" if tenant else f"{step} of {job_id}/"


def counters_equal_a_recount(history: IndexedHistory) -> Iterator[Violation]:
    """After all ends are folded."""
    if history.faults.healed_at is None:
        return
    for each in history.evidence.flows:
        counts = each.flow.counts
        found = Counter(_member_states(history, each))
        counted = (counts.total, counts.succeeded, counts.failed, counts.canceled)
        recounted = (found.total(), *(found[state] for state in _ENDED))
        if counted != recounted:
            text = f"flow {each.flow.id} has counted {counted} (total, succeeded, failed, canceled)"
            yield Violation("N11", 0, f"{text}; its members are {recounted}")


def _member_states(history: IndexedHistory, each: FlowEvidence) -> Iterator[State]:
    """A group is one member of its workflow, with the state of its own flow."""
    yield from (history.jobs[job_id].job.state for job_id in each.members)
    states = {flow.flow.id: flow.flow.state for flow in history.evidence.flows}
    for node in each.nodes:
        if node.part is not None:
            state = states[node.part]
            yield State.QUEUED if state is FlowState.OPEN else State(state.value)


def flows_close_when_all_have_ended(history: IndexedHistory) -> Iterator[Violation]:
    if history.faults.healed_at is None:
        return
    for each in history.evidence.flows:
        states = set(_member_states(history, each))
        expected = _state(each, states)
        if each.flow.state is not expected:
            text = f"flow {each.flow.id} is {each.flow.state}, and should be {expected}"
            yield Violation("N11", 0, text)


def _state(each: FlowEvidence, states: set[State]) -> FlowState:
    if each.flow.sealed_at is None or not states <= set(_ENDED):
        return FlowState.OPEN
    if states <= {State.SUCCEEDED}:
        return FlowState.SUCCEEDED
    return FlowState.CANCELED if each.flow.canceled_at is not None else FlowState.FAILED


def callbacks_come_once(history: IndexedHistory) -> Iterator[Violation]:
    """Each at most once in the life of a flow; and those that are due have come at the end."""
    for each in history.evidence.flows:
        released = each.callbacks
        for moment in Moment:
            jobs = history.jobs_by_call.get(f"{each.flow.name}.{moment}", [])
            if len(jobs) > 1:
                text = f"on_{moment} of flow {each.flow.id} came as jobs {jobs}"
                yield Violation("N11", jobs[1], text)
            is_due = moment in released and moment in _moments(each.flow.state)
            if is_due and not jobs and history.faults.healed_at is not None:
                text = f"flow {each.flow.id} is {each.flow.state}, and on_{moment} has not come"
                yield Violation("N11", 0, text)


def _moments(state: FlowState) -> tuple[Moment, ...]:
    if state is FlowState.OPEN:
        return ()
    ended = Moment.SUCCESS if state is FlowState.SUCCEEDED else Moment.FAILURE
    return ended, Moment.END


def callbacks_come_when_all_have_ended(history: IndexedHistory) -> Iterator[Violation]:
    """At some time before the callback no member was open; for on_success all had succeeded."""
    for each in history.evidence.flows:
        for moment, job_id in each.callbacks.items():
            callback = history.jobs.get(job_id or 0)
            if callback is None:
                continue
            members = [m for m in each.members if history.jobs[m].created <= callback.created]
            if not _was_closed(history, each, members, callback.created):
                text = f"on_{moment} of flow {each.flow.id} came while members were open"
                yield Violation("N11", callback.job.id, text, callback.created)
            elif moment is Moment.SUCCESS:
                yield from _without_success(history, members, callback.job.id, callback.created)


def _was_closed(
    history: IndexedHistory, each: FlowEvidence, members: list[int], until: int
) -> bool:
    """Whether there was a time after the seal at which no member was open."""
    sealed = each.flow.sealed_at
    if sealed is None or micros_of(sealed) > until:
        return False
    spans = sorted(span for m in members for span in live_spans(history.jobs[m]))
    covered = micros_of(sealed)
    for start, end in spans:
        if start > covered:
            return True
        covered = max(covered, end)
    return covered <= until


def _without_success(
    history: IndexedHistory, members: list[int], callback: int, until: int
) -> Iterator[Violation]:
    for job_id in members:
        ends = [lease for lease in history.jobs[job_id].leases if lease.end <= until]
        if not any(lease.state is State.SUCCEEDED for lease in ends):
            text = f"came as on_success, and member {job_id} had not succeeded"
            yield Violation("N11", callback, text, until)


def members_are_added_by_owners(history: IndexedHistory) -> Iterator[Violation]:
    """Each is stored while the member that adds it is leased."""
    for call, jobs in history.jobs_by_call.items():
        adders = history.jobs_by_call.get(call.partition("+")[0], []) if "+" in call else []
        for job_id in jobs if adders else ():
            yield from _check_adder(history, job_id, adders)


def _check_adder(
    history: IndexedHistory, job_id: int, adders: Sequence[int]
) -> Iterator[Violation]:
    at = history.jobs[job_id].created
    leases = [lease for adder in adders for lease in history.jobs[adder].leases]
    if not any(lease.start <= at <= lease.end for lease in leases):
        text = f"was added by job {adders[0]}, which was not leased"
        yield Violation("N11", job_id, text, at)


def nodes_start_after_their_sources(history: IndexedHistory) -> Iterator[Violation]:
    """No node starts before its sources have ended as it needs, but after an operator's retry."""
    for each in history.evidence.flows:
        nodes = {node.number: node for node in each.nodes}
        for node in each.nodes:
            sources = [nodes[number] for number in node.sources]
            for job_id in _jobs_of(history, node):
                yield from _check_start(history, history.jobs[job_id], node, sources)


def _jobs_of(history: IndexedHistory, node: FlowNode) -> Sequence[int]:
    if node.job_id is not None:
        return (node.job_id,) if node.job_id in history.jobs else ()
    return next((e.members for e in history.evidence.flows if e.flow.id == node.part), ())


def _check_start(
    history: IndexedHistory, job: JobIntervals, node: FlowNode, sources: Sequence[FlowNode]
) -> Iterator[Violation]:
    for start in _starts(job):
        for source in sources:
            for source_id in _jobs_of(history, source):
                if not _had_ended(history.jobs[source_id], start, node.on_failure):
                    text = f"started before its source, job {source_id}, had ended as it needs"
                    yield Violation("N12", job.job.id, text, start)


def _starts(job: JobIntervals) -> Iterator[int]:
    """The first start, and that after each retry of the workflow; until an operator has acted on
    the job itself, and need not wait for its sources."""
    by_operator = [
        micros_of(event.at)
        for event in job.events
        if event.kind is EventKind.RETRIED_BY_HAND and not (event.by or "").startswith("flow")
    ]
    retried = [e.at for e in job.events if e.kind is EventKind.RETRIED_BY_HAND]
    for begin in (0, *map(micros_of, retried)):
        start = next((lease.start for lease in job.leases if lease.start >= begin), None)
        if start is not None and not any(at <= start for at in by_operator):
            yield start


def nodes_are_canceled_by_bad_sources(history: IndexedHistory) -> Iterator[Violation]:
    """A node that was canceled because of a source has one that failed or was canceled."""
    flows = history.evidence.flows
    nodes = {node.job_id for each in flows for node in each.nodes if node.job_id is not None}
    for job_id in sorted(nodes & history.jobs.keys()):
        for event in filter(is_canceled_by_the_queue, history.jobs[job_id].events):
            ends = (
                step.state
                for source in _sources_of(history, job_id)
                for step in history.jobs[source].events
                if step.at <= event.at
            )
            if not {State.FAILED, State.CANCELED} & set(ends):
                text = f"was canceled ({event.reason}), and no source had ended so"
                yield Violation("N12", job_id, text, micros_of(event.at))


def _had_ended(source: JobIntervals, at: int, on_failure: OnFailure) -> bool:
    if on_failure is OnFailure.RUN:
        return any(end <= at for _, end in live_spans(source))
    return any(lease.state is State.SUCCEEDED and lease.end <= at for lease in source.leases)


def nodes_get_the_results_of_their_sources(history: IndexedHistory) -> Iterator[Violation]:
    """A result is the token of an attempt of a source that succeeded."""
    for record in history.given:
        tokens = {
            lease.token
            for source in _sources_of(history, record.job)
            for lease in history.jobs[source].leases
            if lease.state is State.SUCCEEDED
        }
        if record.info["value"].get("token") not in tokens:
            text = f"got {record.info['value']}, which no source of it has returned"
            yield Violation("N12", record.job, text, record.at)


def _sources_of(history: IndexedHistory, job_id: int) -> Iterator[int]:
    for each in history.evidence.flows:
        numbers = {n for node in each.nodes if node.job_id == job_id for n in node.sources}
        for node in each.nodes:
            if node.number in numbers:
                yield from _jobs_of(history, node)


def gathers_wait_for_all_children(history: IndexedHistory) -> Iterator[Violation]:
    """When a handler gets its children's results, all have ended; and each is stored once, by the
    owner of the job that gathers them."""
    children = _children(history)
    for record in history.parts:
        prefix = child_prefix(record.job, record.info["step"], history.evidence.tenant)
        for jobs in children.get(prefix, ()):
            if len(jobs) > 1:
                yield Violation("N12", jobs[1], f"is gathered as jobs {jobs}", record.at)
            for job_id in jobs:
                yield from _check_adder(history, job_id, [record.job])
            spans = [span for job_id in jobs for span in live_spans(history.jobs[job_id])]
            if record.kind == "got" and not any(end <= record.at for _, end in spans):
                text = f"was gathered by job {record.job}, which went on before it had ended"
                yield Violation("N12", jobs[0], text, record.at)


def _children(history: IndexedHistory) -> dict[str, list[list[int]]]:
    """The jobs of calls that end with a slash and a name, by what is in front of it."""
    found: dict[str, list[list[int]]] = {}
    for call, jobs in history.jobs_by_call.items():
        prefix, slash, _ = call.rpartition("/")
        found.setdefault(prefix + slash, []).append(jobs)
    return found
