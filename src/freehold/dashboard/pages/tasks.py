"""Tasks: what live workers and this app know, and a form that enqueues a job of one."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from freehold.dashboard.page_request import Page, PageRequest, Redirect
from freehold.errors import BadInput
from freehold.http.jobs import new_job
from freehold.http.routes import Routes
from freehold.http.schemas import EnqueueBody, Key, Name, Wait
from freehold.http_auth import Role
from freehold.model.job import PRIORITY_LIMIT
from freehold.model.payload import stored_object
from freehold.model.state import State
from freehold.store.types import JobFilter
from freehold.tasks import Task

routes = Routes()


class TaskPath(msgspec.Struct, frozen=True):
    name: Name


class EnqueueForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``args``: a JSON object."""

    args: Annotated[str, Meta(max_length=1_000_000)] = "{}"
    queue: Name | None = None
    priority: Annotated[int, Meta(ge=-PRIORITY_LIMIT, le=PRIORITY_LIMIT)] | None = None
    delay_seconds: Wait | None = None
    target: Key | None = None
    unique_key: Key | None = None


@routes.get("/tasks", Role.VIEWER, responses={200: str})
async def task_list(request: PageRequest) -> Page:
    """Every task that this app or a live worker knows."""
    workers = await request.operator.workers()
    known = {name for worker in workers for name in worker.tasks} | set(request.app.tasks.names)
    rows = [
        {
            "name": name,
            "workers": sum(name in worker.tasks for worker in workers),
            "doc": _first_line(request.app.tasks.get(name)) if name in request.app.tasks else "",
            "queue": _queue(request, name),
        }
        for name in sorted(known)
    ]
    return Page(
        template="tasks.html",
        title="Tasks",
        section="Tasks",
        values={"tasks": rows, "worker_count": len(workers)},
        command=request.command_line("workers"),
        topics=("workers",),
    )


def _first_line(task: Task[Any, Any, Any]) -> str:
    return (inspect.getdoc(task.function) or "").partition("\n")[0]


def _queue(request: PageRequest, name: str) -> str | None:
    if name not in request.app.tasks:
        return None
    return request.app.tasks.get(name).options.queue


@routes.get("/tasks/{name}", Role.VIEWER, path=TaskPath, responses={200: str})
async def task_page(request: PageRequest) -> Page:
    """One task: its signature, options, workers and jobs, and a form that enqueues."""
    name: str = request.path.name
    workers = await request.operator.workers()
    newest = JobFilter(task=name, limit=20)
    failed = JobFilter(task=name, states=frozenset({State.FAILED}), limit=10)
    task = request.app.tasks.get(name) if name in request.app.tasks else None
    return Page(
        template="task.html",
        title=f"Task {name}",
        section="Tasks",
        values={
            "name": name,
            "task": task,
            "doc": inspect.getdoc(task.function) or "" if task is not None else "",
            "parameters": task.definition.signature.parameters if task is not None else (),
            "example": _example(task),
            "workers": [worker for worker in workers if name in worker.tasks],
            "jobs": (await request.operator.jobs(newest, reads=1)).jobs,
            "failed": (await request.operator.jobs(failed, reads=1)).jobs,
        },
        command=request.command_line("jobs", f"--task={name}"),
        topics=("jobs",),
    )


def _example(task: Task[Any, Any, Any] | None) -> str:
    """The arguments to begin with: required ones without a value, others with their default."""
    if task is None:
        return "{}"
    shown = {each.name: each.example for each in task.definition.signature.parameters}
    return msgspec.json.format(msgspec.json.encode(shown), indent=2).decode()


@routes.post(
    "/tasks/{name}/enqueue",
    Role.OPERATOR,
    path=TaskPath,
    body=EnqueueForm,
    responses={303: str},
)
async def enqueue(request: PageRequest) -> Redirect:
    """The arguments are checked by the signature, as everywhere."""
    name, form = request.path.name, request.body
    args = stored_object(form.args)
    if args is None:
        raise BadInput('the arguments are not a JSON object: write {"name": value, ...}')
    body = EnqueueBody(
        task=name,
        args=args,
        queue=form.queue,
        priority=form.priority,
        delay_seconds=form.delay_seconds,
        target=form.target,
        unique_key=form.unique_key,
        raw=name not in request.app.tasks,
    )
    handle = await request.app._asubmit(new_job(request.app.tasks, body))
    made = "is enqueued" if handle.created else "existed already, with the same key"
    return Redirect(request.url("jobs", handle.id), f"Job {handle.id} {made}.")
