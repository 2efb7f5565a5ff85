"""The checker's input: the records, and the content of the store at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from freehold.lab.checker.record import Record
from freehold.model.bulk import BulkOperation
from freehold.model.flow import Flow, FlowNode, Moment
from freehold.model.history import Event
from freehold.model.job import Job
from freehold.model.limit import Limit
from freehold.model.schedule_changes import Schedule
from freehold.model.step import Step
from freehold.store.store import Store
from freehold.store.verbs.flows import flow_callbacks

#: More than a run has.
_BULKS = 100
_FLOWS = 1000


@dataclass(frozen=True, slots=True)
class FlowEvidence:
    """A flow, the ids of its members, its callbacks with their jobs, and its nodes."""

    flow: Flow
    members: Sequence[int]
    callbacks: Mapping[Moment, int | None]
    nodes: Sequence[FlowNode] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    records: Sequence[Record]
    jobs: Mapping[int, Job]
    events: Mapping[int, Sequence[Event]]
    #: By limit key or class of limit keys.
    limits: Mapping[str, Limit] = field(default_factory=dict)
    queue_limits: Mapping[str, Limit] = field(default_factory=dict)
    #: How long a lease holds at least, without a renewal.
    lease_micros: int = 0
    #: PostgreSQL stores the time of a write, not of its commit, which may be this much later.
    commit_lag_micros: int = 0
    #: The tenant of the store, where there are several stores.
    tenant: str | None = None
    schedules: Sequence[Schedule] = ()
    bulks: Sequence[BulkOperation] = ()
    steps: Mapping[int, Sequence[Step]] = field(default_factory=dict)
    #: The job and the step of every row that the transaction of a step has written.
    own_rows: Sequence[tuple[int, str]] = ()
    flows: Sequence[FlowEvidence] = ()
    #: Whether every recovery of a lease is among the records. A real process can be killed between
    #: the recovery and its record.
    records_recoveries: bool = False


def gather(
    store: Store,
    ids: Sequence[int],
    records: Sequence[Record],
    limits: Mapping[str, Limit],
    queue_limits: Mapping[str, Limit],
    lease_seconds: float,
    tenant: str | None = None,
    own_rows: Sequence[tuple[int, str]] = (),
) -> Evidence:
    """Reads the jobs and their events through the store's read verbs."""
    jobs = store.read(ids)
    events = {job_id: store.events(job_id) for job_id in sorted(jobs)}
    lease_micros = round(lease_seconds * 1_000_000)
    return Evidence(
        records,
        jobs,
        events,
        limits,
        queue_limits,
        lease_micros,
        tenant=tenant,
        schedules=store.schedules(),
        bulks=store.bulk_operations(None, _BULKS),
        steps={job_id: store.read_steps(job_id) for job_id in sorted(jobs)},
        own_rows=own_rows,
        flows=[_flow(store, flow, jobs) for flow in _flows(store)],
        records_recoveries=True,
    )


def _flows(store: Store) -> list[Flow]:
    """With the groups of workflows, which no listing contains."""
    found = store.flows(_FLOWS)
    parts = [node.part for flow in found for node in store.flow_nodes(flow.id)]
    groups = store.read_flows([part for part in parts if part is not None])
    return [*found, *groups.values()]


def _flow(store: Store, flow: Flow, jobs: Mapping[int, Job]) -> FlowEvidence:
    """The members are found by their policies, not as the store finds them."""
    members = [job_id for job_id, job in sorted(jobs.items()) if job.policy.flow == flow.id]
    callbacks = store.run(flow_callbacks(flow.id))
    return FlowEvidence(flow, members, callbacks, store.flow_nodes(flow.id))
