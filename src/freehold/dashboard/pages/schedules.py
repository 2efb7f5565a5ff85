"""Schedules: when they fire, what their last ticks did; pause, run now, drop."""

from __future__ import annotations

from freehold.dashboard.forms import PauseForm, ReasonForm
from freehold.dashboard.page_request import Page, PageRequest, Redirect
from freehold.http.routes import Routes
from freehold.http.schemas import SchedulePath
from freehold.http_auth import Role

routes = Routes()


@routes.get("/schedules", Role.VIEWER, responses={200: str})
async def schedule_list(request: PageRequest) -> Page:
    """All schedules, by name."""
    return Page(
        template="schedules.html",
        title="Schedules",
        section="Schedules",
        values={"schedules": await request.operator.schedules()},
        command=request.command_line("schedules"),
        topics=("schedules",),
    )


@routes.get("/schedules/{name}", Role.VIEWER, path=SchedulePath, responses={200: str})
async def schedule_page(request: PageRequest) -> Page:
    """One schedule with its next ticks."""
    name: str = request.path.name
    schedule = await request.operator.schedule(name)
    paused = {each.name for each in await request.operator.queues() if each.paused}
    return Page(
        template="schedule.html",
        title=f"Schedule {name}",
        section="Schedules",
        values={
            "schedule": schedule,
            "next_runs": await request.operator.next_runs(name),
            "queue_is_paused": schedule.queue in paused,
        },
        command=request.command_line("schedules", "next", name),
        topics=("schedules",),
    )


@routes.post(
    "/schedules/{name}/pause",
    Role.OPERATOR,
    path=SchedulePath,
    body=PauseForm,
    responses={303: str},
)
async def pause_schedule(request: PageRequest) -> Redirect:
    """Its ticks make no jobs."""
    name, form = request.path.name, request.body
    until = await form.until(request)
    await request.operator.pause_schedule(name, by=request.by, reason=form.reason, until=until)
    return Redirect(request.url("schedules", name), f"Schedule {name} is paused.")


@routes.post(
    "/schedules/{name}/resume",
    Role.OPERATOR,
    path=SchedulePath,
    body=ReasonForm,
    responses={303: str},
)
async def resume_schedule(request: PageRequest) -> Redirect:
    name = request.path.name
    await request.operator.resume_schedule(name, by=request.by, reason=request.body.reason)
    return Redirect(request.url("schedules", name), f"Schedule {name} is resumed.")


@routes.post(
    "/schedules/{name}/run", Role.OPERATOR, path=SchedulePath, body=ReasonForm, responses={303: str}
)
async def run_schedule(request: PageRequest) -> Redirect:
    """Makes its job now, beside its ticks."""
    name = request.path.name
    made = await request.operator.run_schedule(name, by=request.by, reason=request.body.reason)
    return Redirect(request.url("jobs", made.id), f"Schedule {name} has made job {made.id}.")


@routes.post(
    "/schedules/{name}/drop",
    Role.OPERATOR,
    path=SchedulePath,
    body=ReasonForm,
    responses={303: str},
)
async def drop_schedule(request: PageRequest) -> Redirect:
    name = request.path.name
    await request.operator.drop_schedule(name, by=request.by, reason=request.body.reason)
    return Redirect(request.url("schedules"), f"Schedule {name} is dropped.")
