"""The overview: what needs a person first, then the numbers, queues and jobs of this moment."""

from __future__ import annotations

from freehold.dashboard.page_request import Page, PageRequest
from freehold.http.routes import Routes
from freehold.http_auth import Role
from freehold.model.state import LEASED, State
from freehold.store.types import JobFilter, QueueInfo

routes = Routes()
_SHOWN = 10
#: Tiles count up to this number.
_BOUND = 1_000


@routes.get("/", Role.VIEWER, responses={200: str})
async def overview(request: PageRequest) -> Page:
    """What needs a person, live numbers, queues, longest running and newest failed jobs."""
    operator = request.operator
    counts = await operator.counts(_BOUND)
    queues = await operator.queues()
    workers = await operator.workers()
    running = await operator.jobs(JobFilter(states=LEASED, limit=200), reads=1)
    failed = await operator.jobs(JobFilter(states=frozenset({State.FAILED}), limit=_SHOWN), reads=1)
    by_start = sorted(
        (job for job in running.jobs if job.lease is not None),
        key=lambda job: (job.lease.started_at or job.lease.leased_at) if job.lease else job.run_at,
    )
    values = {
        "findings": await operator.findings(),
        "counts": counts,
        "bound": _BOUND,
        "queues": sorted(queues, key=_busy, reverse=True)[:_SHOWN],
        "queue_count": len(queues),
        "pause": await operator.pause_of_all(),
        "workers": workers,
        "slots": sum(worker.concurrency for worker in workers),
        "used": sum(worker.running for worker in workers),
        "running": by_start[:_SHOWN],
        "failed": failed.jobs,
    }
    return Page(
        template="overview.html",
        title="Overview",
        section="Overview",
        values=values,
        command=request.command_line("top"),
        topics=("jobs", "queues", "workers"),
    )


def _busy(queue: QueueInfo) -> tuple[int, int, str]:
    return (queue.ready + queue.leased, queue.not_ready, queue.name)
