"""Workers: live processes with their slots, and the jobs that they hold."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any, Literal

import msgspec

from freehold.dashboard.page_request import Page, PageRequest
from freehold.dashboard.spans import scale_of, swimlanes
from freehold.http.problems import ApiError
from freehold.http.routes import Routes
from freehold.http.schemas import Key
from freehold.http_auth import Role
from freehold.model.audit import AuditFilter, AuditKind
from freehold.model.state import LEASED
from freehold.store.types import JobFilter

routes = Routes()
_MINUTES = (1, 5, 15, 60)
#: Managers, decisions of each, lanes of the picture, and attempts of the list beside it.
_MANAGERS = 4
_DECISIONS = 5
_LANES = 60
_LISTED = 50
#: Attempts of the picture: it is drawn again while workers run.
_SPANS = 1_000


class WorkerPath(msgspec.Struct, frozen=True):
    owner: Key


class WorkerListQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``minutes``: how far the picture looks back."""

    minutes: Literal[1, 5, 15, 60] = 5


@routes.get("/workers", Role.VIEWER, query=WorkerListQuery, responses={200: str})
async def worker_list(request: PageRequest) -> Page:
    """Live workers with their slots, what each of them did, and why there are so many."""
    found = await request.operator.workers()
    workers = sorted(found, key=lambda w: (w.manager or "", w.started_at))
    versions = Counter(worker.version for worker in workers)
    managers = sorted({worker.manager for worker in workers if worker.manager})
    return Page(
        template="workers.html",
        title="Workers",
        section="Workers",
        values={
            "workers": workers,
            "usual": versions.most_common(1)[0][0] if versions else None,
            "slots": sum(worker.concurrency for worker in workers),
            "used": sum(worker.running for worker in workers),
            "managers": [await _manager(request, name) for name in managers[:_MANAGERS]],
            "manager_count": len(managers),
            **await _picture(request, [worker.owner for worker in workers]),
        },
        command=request.command_line("workers"),
        topics=("workers",),
        refresh=request.url("workers", minutes=request.query.minutes),
    )


async def _manager(request: PageRequest, name: str) -> dict[str, Any]:
    """Its newest decisions, which it writes into the audit."""
    filter = AuditFilter(kind=AuditKind.FLEET, subject=name, limit=_DECISIONS)
    return {"name": name, "decisions": (await request.operator.audit(filter)).entries}


async def _picture(request: PageRequest, alive: list[str]) -> dict[str, Any]:
    minutes: int = request.query.minutes
    now = await request.operator.now()
    since = now - timedelta(minutes=minutes)
    found = await request.operator.attempts(since, now, _SPANS)
    scale = scale_of(found.spans, since, now)
    return {
        "minutes": minutes,
        "choices": _MINUTES,
        "scale": scale,
        "lanes": swimlanes(found.spans, alive, scale)[:_LANES],
        "spans": found,
        "newest": sorted(found.spans, key=lambda span: span.leased_at, reverse=True)[:_LISTED],
    }


@routes.get("/workers/{owner}", Role.VIEWER, path=WorkerPath, responses={200: str})
async def worker_page(request: PageRequest) -> Page:
    """One worker: what it reports, and the jobs that it holds."""
    owner: str = request.path.owner
    workers = await request.operator.workers()
    worker = next((each for each in workers if each.owner == owner), None)
    leased = JobFilter(worker=owner, states=LEASED, limit=200)
    held = await request.operator.jobs(leased, reads=request.reads)
    ended = await request.operator.jobs(JobFilter(worker=owner, limit=50), reads=1)
    if worker is None and not held.jobs and not ended.jobs:
        raise ApiError(
            404, "Not found", f"worker {owner} is not alive, and none of the newest jobs is its own"
        )
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
