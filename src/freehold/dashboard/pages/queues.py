"""Queues: the list, the page of one queue, and its settings."""

from __future__ import annotations

from functools import partial
from typing import Any

from freehold.dashboard.forms import LimitForm, PauseForm, ReasonForm, WeightForm
from freehold.dashboard.page_request import Page, PageRequest, Redirect
from freehold.dashboard.pages import pausing
from freehold.http.routes import Routes
from freehold.http.schemas import QueuePath
from freehold.http_auth import Role
from freehold.model.limit import ALL_QUEUES
from freehold.model.state import LEASED, State
from freehold.operator import AsyncOperator
from freehold.store.types import JobFilter, QueueInfo

routes = Routes()


@routes.get("/queues", Role.VIEWER, responses={200: str})
async def queue_list(request: PageRequest) -> Page:
    """Queues that have live jobs or settings."""
    return Page(
        template="queues.html",
        title="Queues",
        section="Queues",
        values=await request.shared("queues", partial(_values, request.operator)),
        command=request.command_line("queues"),
        topics=("queues",),
    )


async def _values(operator: AsyncOperator) -> dict[str, Any]:
    return {"queues": await operator.queue_list(), "pause": await operator.pause_of_all()}


@routes.get("/queues/{name}", Role.VIEWER, path=QueuePath, responses={200: str})
async def queue_page(request: PageRequest) -> Page:
    """One queue: what holds it back, its workers, and its newest jobs."""
    name: str = request.path.name
    queue = await request.operator.queue(name)
    if queue is None:  # no live job and no setting, as a queue that is done with its work
        queue = QueueInfo(name, 0, 0, 0, None, None, None, None, None)
    waiting = JobFilter(queue=name, states=frozenset({State.QUEUED}), limit=25)
    leased = JobFilter(queue=name, states=LEASED, limit=25)
    workers = await request.operator.workers()
    return Page(
        template="queue.html",
        title=f"Queue {name}",
        section="Queues",
        values={
            "queue": queue,
            "wait": (await request.operator.queue_waits([name])).get(name),
            "waiting": (await request.operator.jobs(waiting, reads=request.reads)).jobs,
            "running": (await request.operator.jobs(leased, reads=request.reads)).jobs,
            "workers": [each for each in workers if not each.queues or name in each.queues],
        },
        command=request.command_line("jobs", f"--queue={name}"),
        topics=("queues", "jobs"),
    )


@routes.post(
    "/queues/{name}/pause", Role.OPERATOR, path=QueuePath, body=PauseForm, responses={303: str}
)
async def pause_queue(request: PageRequest) -> Redirect:
    """Its ready jobs wait; its running jobs go on."""
    return await pausing.pause(request, request.operator.pause_queue, "queue", request.path.name)


@routes.post(
    "/queues/{name}/resume", Role.OPERATOR, path=QueuePath, body=ReasonForm, responses={303: str}
)
async def resume_queue(request: PageRequest) -> Redirect:
    return await pausing.resume(request, request.operator.resume_queue, "queue", request.path.name)


@routes.post(
    "/queues/{name}/weight", Role.ADMIN, path=QueuePath, body=WeightForm, responses={303: str}
)
async def weigh_queue(request: PageRequest) -> Redirect:
    name, form = request.path.name, request.body
    await request.operator.set_weight(name, form.weight, request.by, form.reason)
    return Redirect(request.url("queues", name), f"Queue {name} has the weight {form.weight:g}.")


@routes.post(
    "/queues/{name}/limit", Role.ADMIN, path=QueuePath, body=LimitForm, responses={303: str}
)
async def limit_queue(request: PageRequest) -> Redirect:
    name, form = request.path.name, request.body
    await request.operator.set_queue_limit(name, form.limit, request.by, form.reason)
    return Redirect(request.url("queues", name), f"Queue {name}: {form.limit}.")


@routes.post("/all-queues/pause", Role.OPERATOR, body=PauseForm, responses={303: str})
async def pause_all(request: PageRequest) -> Redirect:
    """Ready jobs of all queues wait; running jobs go on."""
    until = await request.body.until(request)
    await request.operator.pause_queue(ALL_QUEUES, request.by, request.body.reason, until)
    return Redirect(request.url("queues"), "All queues are paused.")


@routes.post("/all-queues/resume", Role.OPERATOR, body=ReasonForm, responses={303: str})
async def resume_all(request: PageRequest) -> Redirect:
    await request.operator.resume_queue(ALL_QUEUES, request.by, request.body.reason)
    return Redirect(
        request.url("queues"), "All queues are resumed; a queue with its own pause still has it."
    )
