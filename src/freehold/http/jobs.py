"""Jobs: enqueue, list, show, explain, and the operator's verbs."""

from __future__ import annotations

from typing import Any

import msgspec

from freehold.http.request import ApiRequest, ApiResponse
from freehold.http.routes import Handler, Routes
from freehold.http.schemas import (
    ActionBody,
    EnqueueBody,
    JobListQuery,
    JobPath,
    LanePath,
    ShowQuery,
    given,
)
from freehold.http_auth import Role
from freehold.json_views import JobDetailDocument, JobDocument, job_detail_document, job_document
from freehold.model import payload
from freehold.model.explain import Cause
from freehold.model.job import NewJob
from freehold.model.operator_actions import ActionResult, OperatorVerb
from freehold.store.types import JobFilter
from freehold.tasks import Options, Registry, raw_job

routes = Routes()


class EnqueuedBody(msgspec.Struct, frozen=True):
    """``created`` is false where a job was there already, by its key: ``id`` is that job's."""

    id: int
    task: str
    created: bool


class JobPageBody(msgspec.Struct, frozen=True):
    """``next`` is the ``before`` of the next page, null after the last."""

    jobs: list[JobDocument]
    next: int | None


class ExplainBody(msgspec.Struct, frozen=True):
    id: int
    causes: list[Cause]


@routes.post(
    "/api/jobs", Role.OPERATOR, body=EnqueueBody, answers={200: EnqueuedBody, 201: EnqueuedBody}
)
async def enqueue(asked: ApiRequest) -> ApiResponse:
    """Enqueue a job. 201: it is new; 200: it was there already."""
    new = _new_job(asked.app.tasks, asked.body)
    handle = await asked.app.asubmit(new)
    status = 201 if handle.created else 200
    return ApiResponse(status, EnqueuedBody(handle.id, handle.task, handle.created))


def _new_job(tasks: Registry, body: EnqueueBody) -> NewJob:
    """Like `freehold enqueue`: a known task checks its arguments, and has its own options."""
    args = payload.encode(f"the call of task {body.task}", body.args)
    options = _options(body)
    if body.raw or not tasks.names:
        return raw_job(body.task, Options(**options), args, body.pending)
    return tasks.get(body.task).using(**options).prepare_json(args, pending=body.pending)


def _options(body: EnqueueBody) -> dict[str, Any]:
    options: dict[str, Any] = {
        "queue": body.queue,
        "priority": body.priority,
        "run_at": body.run_at,
        "delay": body.delay_seconds,
        "target": body.target,
        "limit_key": body.limit_key,
        "unique_key": body.unique_key,
        "idempotency_key": body.idempotency_key,
        "idempotency_seconds": body.idempotency_seconds,
        "max_attempts": body.max_attempts,
        "timeout": body.timeout_seconds,
        "tags": body.tags or None,
    }
    return {name: value for name, value in options.items() if value is not None}


@routes.get("/api/jobs", Role.VIEWER, query=JobListQuery, answers={200: JobPageBody})
async def list_jobs(asked: ApiRequest) -> JobPageBody:
    """Jobs, newest first, a page at a time. Arguments are shown to operators who ask for them."""
    query: JobListQuery = asked.query
    if query.args:
        asked.check_role(Role.OPERATOR, "showing arguments")
    page = await asked.operate.jobs(
        JobFilter(
            states=frozenset(query.state),
            queue=given(query.queue),
            task=given(query.task),
            target=given(query.target),
            tag=given(query.tag),
            before=given(query.before),
            limit=query.limit,
        )
    )
    found = [job_document(job, show_args=query.args, show_trace=False) for job in page.jobs]
    return JobPageBody(found, page.next)


@routes.get(
    "/api/jobs/{id}", Role.VIEWER, path=JobPath, query=ShowQuery, answers={200: JobDetailDocument}
)
async def show_job(asked: ApiRequest) -> JobDetailDocument:
    """A job with all that happened to it. Arguments and tracebacks are shown to operators who
    ask for them."""
    query: ShowQuery = asked.query
    if query.args or query.trace:
        asked.check_role(Role.OPERATOR, "showing arguments and tracebacks")
    story = await asked.operate.show(asked.path.id)
    return job_detail_document(story, show_args=query.args, show_trace=query.trace)


@routes.get("/api/jobs/{id}/explain", Role.VIEWER, path=JobPath, answers={200: ExplainBody})
async def explain_job(asked: ApiRequest) -> ExplainBody:
    """Why a job is not running, and what to do about it."""
    return ExplainBody(asked.path.id, await asked.operate.explain(asked.path.id))


_VERBS = {
    OperatorVerb.CANCEL: "End a job; one that runs is asked to stop. For a failed one: resolved.",
    OperatorVerb.PAUSE: "Hold a job back until it is resumed; one that runs is asked to stop.",
    OperatorVerb.RESUME: "Let a paused or failed job go on.",
    OperatorVerb.RETRY: "Run a finished job again, with all its attempts.",
    OperatorVerb.SUBMIT: "Put a pending job into the queue.",
}


def _acting(verb: OperatorVerb, summary: str) -> Handler:
    async def act(asked: ApiRequest) -> ActionResult:
        answers = await asked.operate.act(verb, [asked.path.id], asked.by, asked.body.reason)
        return answers[0]

    act.__name__, act.__doc__ = f"{verb}_job", summary
    return act


for _verb, _summary in _VERBS.items():
    routes.post(
        f"/api/jobs/{{id}}/{_verb}",
        Role.OPERATOR,
        path=JobPath,
        body=ActionBody,
        answers={200: ActionResult},
        problems=(409,),
    )(_acting(_verb, _summary))


@routes.post(
    "/targets/{target}/jobs/{id}/resume/",
    Role.OPERATOR,
    path=LanePath,
    body=ActionBody,
    answers={200: ActionResult},
    problems=(409,),
)
async def resume_in_lane(asked: ApiRequest) -> ActionResult:
    """Put a paused or failed job of this target back into the queue; its lane goes on. Any
    other state is refused."""
    path: LanePath = asked.path
    return await asked.operate.resume_in_lane(path.target, path.id, asked.by, asked.body.reason)
