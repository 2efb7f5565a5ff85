"""What needs a person, by bounded reads. The rules are in `model/findings.py`."""

from __future__ import annotations

from freehold.model.findings import (
    OVERDUE_SECONDS,
    STANDING_SECONDS,
    Finding,
    FindingFacts,
    findings,
)
from freehold.operations.lists import queue_list
from freehold.operator_schedules import schedules
from freehold.store.statements import Verb, method
from freehold.store.types import QUEUE_LIST_BOUND
from freehold.store.verbs import bulk, flows, queries, workers

#: Bulk operations that are looked at, the newest.
_OPERATIONS = 20
#: Flows that wait for a person, the oldest.
_FLOWS = 20


def read_facts(tenant: str | None = None) -> Verb[FindingFacts]:
    """What the rules look at. The number of jobs does not matter. ``tenant``: of the operator."""
    counts = yield from queries.counts(QUEUE_LIST_BOUND)
    queues = yield from queue_list()
    live_workers = yield from workers.workers()
    blocked = yield from queries.blocked_lanes()
    found = yield from schedules()
    operations = yield from bulk.operations(None, _OPERATIONS)
    return FindingFacts(
        now=(yield from queries.now()),
        counts=counts,
        count_bound=QUEUE_LIST_BOUND,
        queues=tuple(queues),
        pause_of_all=(yield from queries.pause_of_all()),
        workers=tuple(live_workers),
        blocked=tuple(blocked),
        overdue_leases=(yield from queries.overdue_leases(OVERDUE_SECONDS)),
        schedules=tuple(found),
        bulk=tuple(operations),
        flows=tuple((yield from flows.resting_flows(_FLOWS))),
        standing=tuple((yield from flows.standing_flows(STANDING_SECONDS, _FLOWS))),
        tenant=tenant,
    )


def find(tenant: str | None = None) -> Verb[list[Finding]]:
    """What needs a person: at most 10 findings, worst first, each with its remedy."""
    return findings((yield from read_facts(tenant)))


class FindingActions:
    findings = method(find)
    finding_facts = method(read_facts)
