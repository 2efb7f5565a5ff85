"""What a job waits for that is a node of a workflow, or gathers others."""

from __future__ import annotations

from freehold.model.explain import AwaitedJob
from freehold.model.flow import FlowKind
from freehold.model.job import Job
from freehold.model.suspension import flow_of
from freehold.store.statements import Verb, read
from freehold.store.verbs.flow_members import live_members, ranges_of
from freehold.store.verbs.flows import read_flows
from freehold.store.verbs.queries import read_jobs

#: Jobs that one explanation names.
NAMED = 5


def awaited_jobs(job: Job) -> Verb[tuple[AwaitedJob, ...]]:
    """The first jobs that keep this one waiting, with their states."""
    flow = flow_of(job.waits_for)
    found = (yield from read_flows([flow])) if flow is not None else {}
    if flow is None or flow not in found:
        return ()
    kind, number = found[flow].kind, job.policy.node
    if kind is FlowKind.GATHER:
        return (yield from _of_members(flow))
    parent: int | None = flow
    if kind is FlowKind.GROUP:
        parent, number = found[flow].parent, found[flow].node
    return (yield from _of_sources(parent, number))


def _of_members(flow: int) -> Verb[tuple[AwaitedJob, ...]]:
    ranges = yield from ranges_of(flow)
    jobs = yield from live_members(flow, ranges, 0, NAMED)
    return tuple(AwaitedJob(job.task, job.id, job.state.value, job.reason) for job in jobs)


def _of_sources(flow: int | None, number: int | None) -> Verb[tuple[AwaitedJob, ...]]:
    rows = yield from read("node_sources", flow=flow, number=number, limit=NAMED)
    jobs = yield from read_jobs([job_id for _, job_id, _, _ in rows if job_id is not None])
    return tuple(
        AwaitedJob(name, job_id, jobs[job_id].state.value, jobs[job_id].reason)
        if job_id in jobs
        else AwaitedJob(name, job_id, state or "open", None)
        for name, job_id, _, state in rows
    )
