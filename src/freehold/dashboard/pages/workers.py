"""Workers: live processes with their slots, and the jobs that they hold."""

from __future__ import annotations

from collections import Counter

import msgspec

from freehold.dashboard.page_request import Page, PageRequest
from freehold.http.problems import ApiError
from freehold.http.routes import Routes
from freehold.http.schemas import Key
from freehold.http_auth import Role
from freehold.model.state import LEASED
from freehold.store.types import JobFilter

routes = Routes()


class WorkerPath(msgspec.Struct, frozen=True):
    owner: Key


@routes.get("/workers", Role.VIEWER, responses={200: str})
async def worker_list(request: PageRequest) -> Page:
    """Live workers with their host, queues and slots in use."""
    workers = await request.operator.workers()
    versions = Counter(worker.version for worker in workers)
    return Page(
        template="workers.html",
        title="Workers",
        section="Workers",
        values={
            "workers": sorted(workers, key=lambda w: (w.manager or "", w.started_at)),
            "usual": versions.most_common(1)[0][0] if versions else None,
            "slots": sum(worker.concurrency for worker in workers),
            "used": sum(worker.running for worker in workers),
            "managers": sorted({worker.manager for worker in workers if worker.manager}),
        },
        command=request.command_line("workers"),
        topics=("workers",),
    )


@routes.get("/workers/{owner}", Role.VIEWER, path=WorkerPath, responses={200: str})
async def worker_page(request: PageRequest) -> Page:
    """One worker: what it reports, and the jobs that it holds."""
    owner: str = request.path.owner
    workers = await request.operator.workers()
    worker = next((each for each in workers if each.owner == owner), None)
    leased = JobFilter(worker=owner, states=LEASED, limit=200)
    held = await request.operator.jobs(leased, reads=request.reads)
    if worker is None and not held.jobs:
        raise ApiError(404, "Not found", f"worker {owner} is not alive, and holds no job")
    ended = await request.operator.jobs(JobFilter(worker=owner, limit=50), reads=1)
    return Page(
        template="worker.html",
        title=f"Worker {owner}",
        section="Workers",
        values={
            "owner": owner,
            "worker": worker,
            "held": held.jobs,
            "ended": [job for job in ended.jobs if job.lease is None],
        },
        command=request.command_line("jobs", f"--worker={owner}"),
        topics=("workers", "jobs"),
    )
