"""The overview: what needs a person first, then the numbers, queues and jobs of this moment."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from freehold.dashboard.page_request import Page, PageRequest
from freehold.http.routes import Routes
from freehold.http_auth import Role
from freehold.model.findings import findings
from freehold.model.state import LEASED, State
from freehold.operator import AsyncOperator
from freehold.store.types import QUEUE_LIST_BOUND, JobFilter, QueueInfo

routes = Routes()
_SHOWN = 10


@routes.get("/", Role.VIEWER, responses={200: str})
async def overview(request: PageRequest) -> Page:
    """What needs a person, live numbers, queues, longest running and newest failed jobs."""
    return Page(
        template="overview.html",
        title="Overview",
        section="Overview",
        values=await request.shared("overview", partial(_values, request.operator)),
        command=request.command_line("top"),
        topics=("jobs", "queues", "workers"),
    )


async def _values(operator: AsyncOperator) -> dict[str, Any]:
    """Numbers and findings are of the same reads."""
    facts = await operator.finding_facts()
    running = await operator.jobs(JobFilter(states=LEASED, limit=200), reads=1)
    failed = await operator.jobs(JobFilter(states=frozenset({State.FAILED}), limit=_SHOWN), reads=1)
    by_start = sorted(
        (job for job in running.jobs if job.lease is not None),
        key=lambda job: (job.lease.started_at or job.lease.leased_at) if job.lease else job.run_at,
    )
    return {
        "findings": findings(facts),
        "counts": facts.counts,
        "bound": facts.count_bound,
        "queues": await _busiest(operator, facts.queues),
        "queue_count": len(facts.queues),
        "pause": facts.pause_of_all,
        "workers": facts.workers,
        "slots": sum(worker.concurrency for worker in facts.workers),
        "used": sum(worker.running for worker in facts.workers),
        "running": by_start[:_SHOWN],
        "failed": failed.jobs,
    }


async def _busiest(operator: AsyncOperator, queues: Sequence[QueueInfo]) -> list[QueueInfo]:
    """Those that are shown are counted further than all of them could be."""
    found = sorted(queues, key=_busy, reverse=True)[:_SHOWN]
    if any(max(each.ready, each.leased, each.not_ready) >= each.bound for each in found):
        again = [await operator.queue(each.name, QUEUE_LIST_BOUND) for each in found]
        found = [now or before for now, before in zip(again, found, strict=True)]
    return sorted(found, key=_busy, reverse=True)


def _busy(queue: QueueInfo) -> tuple[int, float, int, str]:
    """Of queues that reach the bound the one whose oldest job has waited longest."""
    oldest = queue.oldest_ready_at
    waited = 0.0 if oldest is None else -oldest.timestamp()
    return (queue.ready + queue.leased, waited, queue.not_ready, queue.name)
