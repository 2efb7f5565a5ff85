"""Jobs: enqueue, list, show, explain, and the operator's verbs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from freehold.errors import BadInput
from freehold.http.request import ApiRequest, ApiResponse
from freehold.http.routes import Handler, Routes
from freehold.http.schemas import (
    ActionBody,
    EnqueueBody,
    ExplainQuery,
    JobListQuery,
    JobPath,
    LanePath,
    RetryBody,
    ShowQuery,
    value_or_none,
)
from freehold.http_auth import Role
from freehold.json_views import JobDetailDocument, JobDocument, job_detail_document, job_document
from freehold.model import payload
from freehold.model.explain import Cause
from freehold.model.job import NewJob
from freehold.model.meta import meta_of
from freehold.model.operator_actions import ActionResult, ActionStatus, OperatorVerb
from freehold.model.options import Options
from freehold.model.waiting import with_waiting_options
from freehold.operator import AsyncOperator
from freehold.store.types import JobFilter
from freehold.tasks import Registry, raw_job, with_secrets

routes = Routes()
#: A wait ends so soon after the service begins to close.
_CLOSING_SECONDS = 1.0


class EnqueuedBody(msgspec.Struct, frozen=True):
    """``created`` is false if a job with the same key existed already: ``id`` is that job's.
    ``replaced``: that job waited, and got the values of this call. ``created_at`` is null if it has
    ended."""

    id: int
    task: str
    created: bool
    replaced: bool
    created_at: datetime | None


class JobPageBody(msgspec.Struct, frozen=True):
    """``next`` is the ``before`` of the next page, null after the last. A page of a rare filter can
    be short, or even empty, and have a next one: ``looked_until`` is the creation time of the
    oldest job that was examined, null if all have been."""

    jobs: list[JobDocument]
    next: int | None
    looked_until: datetime | None


class ExplainBody(msgspec.Struct, frozen=True):
    id: int
    causes: list[Cause]


@routes.post(
    "/api/jobs", Role.OPERATOR, body=EnqueueBody, responses={200: EnqueuedBody, 201: EnqueuedBody}
)
async def enqueue(request: ApiRequest) -> ApiResponse:
    """Enqueue a job. 201: it is new; 200: a job with the same key existed already."""
    new = with_secrets(new_job(request.app.tasks, request.body), request.body.secret_args)
    handle = await request.app._asubmit(new)
    status = 201 if handle.created else 200
    body = EnqueuedBody(handle.id, handle.task, handle.created, handle.replaced, handle.created_at)
    return ApiResponse(status, body)


def new_job(tasks: Registry, body: EnqueueBody) -> NewJob:
    """As with `freehold enqueue`, a known task checks its arguments and has its own options."""
    args = payload.encode(f"the call of task {body.task}", body.args)
    options = _options(body)
    if body.raw or not tasks.names:
        return raw_job(body.task, Options(**options), args, body.pending)
    return tasks.get(body.task).using(**options).prepare_json(args, pending=body.pending)


def _options(body: EnqueueBody) -> dict[str, Any]:
    if body.start_by is not None and body.start_by_seconds is not None:
        raise BadInput("start_by and start_by_seconds exclude each other: give one of them")
    options: dict[str, Any] = {
        "queue": body.queue,
        "priority": body.priority,
        "run_at": body.run_at,
        "delay": body.delay_seconds,
        "start_by": body.start_by if body.start_by_seconds is None else body.start_by_seconds,
        "target": body.target,
        "limit_key": body.limit_key,
        "unique_key": body.unique_key,
        "idempotency_key": body.idempotency_key,
        "idempotency_seconds": body.idempotency_seconds,
        "max_attempts": body.max_attempts,
        "timeout": body.timeout_seconds,
        "tags": body.tags or None,
        "meta": body.meta,
        "unique_until": body.unique_until,
        "replace": body.replace or None,
        "debounce_key": body.debounce_key,
        "debounce_seconds": body.debounce_seconds,
        "debounce_at_most_seconds": body.debounce_at_most_seconds,
        "throttle_key": body.throttle_key,
        "throttle_seconds": body.throttle_seconds,
    }
    return with_waiting_options(options)


@routes.get("/api/jobs", Role.VIEWER, query=JobListQuery, responses={200: JobPageBody})
async def list_jobs(request: ApiRequest) -> JobPageBody:
    """List jobs, newest first, in pages. Only operators can request the arguments."""
    query: JobListQuery = request.query
    if query.args:
        request.check_role(Role.OPERATOR, "showing arguments")
    filter = _filter(query)
    if query.q:
        filter = await request.operator.search(query.q, filter)
    page = await request.operator.jobs(filter)
    found = [job_document(job, show_args=query.args, show_trace=False) for job in page.jobs]
    return JobPageBody(found, page.next, page.looked_until)


def _filter(query: JobListQuery) -> JobFilter:
    return JobFilter(
        states=frozenset(query.state),
        queue=value_or_none(query.queue),
        task=value_or_none(query.task),
        target=value_or_none(query.target),
        tag=value_or_none(query.tag),
        meta=meta_of(query.meta),
        error=value_or_none(query.error),
        worker=value_or_none(query.worker),
        created_since=value_or_none(query.created_since),
        created_until=value_or_none(query.created_until),
        finished_since=value_or_none(query.finished_since),
        finished_until=value_or_none(query.finished_until),
        before=value_or_none(query.before),
        limit=query.limit,
    )


@routes.get(
    "/api/jobs/{id}", Role.VIEWER, path=JobPath, query=ShowQuery, responses={200: JobDetailDocument}
)
async def show_job(request: ApiRequest) -> JobDetailDocument:
    """Show a job with its timeline. Only operators can request arguments and tracebacks. With
    `wait` the response comes when the job has ended, or after so many seconds."""
    query: ShowQuery = request.query
    if query.args or query.trace:
        request.check_role(Role.OPERATOR, "showing arguments and tracebacks")
    if query.wait > 0:
        await _wait_for_end(request, query.wait)
    detail = await request.operator.show(request.path.id)
    return job_detail_document(detail, show_args=query.args, show_trace=query.trace)


async def _wait_for_end(request: ApiRequest, seconds: float) -> None:
    """Counted as a stream, so that waits cannot use up the service. One wait for the whole time,
    because each new one is read often at first."""
    with request.service.streams.counted(request.caller):
        waiting = asyncio.create_task(request.app._client.wait_async(request.path.id, seconds))
        try:
            while not (waiting.done() or request.service.closing):
                await asyncio.wait({waiting}, timeout=_CLOSING_SECONDS)
        finally:
            waiting.cancel()
        await asyncio.wait({waiting})
        if not waiting.cancelled():
            with contextlib.suppress(TimeoutError):
                waiting.result()


@routes.get("/api/jobs/{id}/explain", Role.VIEWER, path=JobPath, responses={200: ExplainBody})
async def explain_job(request: ApiRequest) -> ExplainBody:
    """Explain why a job is not running, and what to do about it."""
    causes = await request.operator.explain(request.path.id, seen_by=request.tenant)
    return ExplainBody(request.path.id, causes)


@routes.get(
    "/api/jobs/explain", Role.VIEWER, query=ExplainQuery, responses={200: list[ExplainBody]}
)
async def explain_jobs(request: ApiRequest) -> list[ExplainBody]:
    """Explain the jobs of a list, without those that do not exist."""
    found = await request.operator.explain_many(request.query.id, seen_by=request.tenant)
    return [ExplainBody(job_id, causes) for job_id, causes in found.items()]


Action: TypeAlias = Callable[..., Awaitable[list[ActionResult]]]

_ACTIONS: tuple[tuple[OperatorVerb, Action, str], ...] = (
    (
        OperatorVerb.CANCEL,
        AsyncOperator.cancel,
        "Cancel a job. The worker of a running job is asked to stop it. A failed job is resolved.",
    ),
    (
        OperatorVerb.PAUSE,
        AsyncOperator.pause,
        "Pause a job until it is resumed. The worker of a running job is asked to stop it.",
    ),
    (OperatorVerb.RESUME, AsyncOperator.resume, "Resume a paused or failed job."),
    (OperatorVerb.SUBMIT, AsyncOperator.submit, "Put a pending job into the queue."),
)


def _action_handler(verb: OperatorVerb, action: Action, summary: str) -> Handler:
    async def act(request: ApiRequest) -> ActionResult:
        results = await action(
            request.operator, request.path.id, by=request.by, reason=request.body.reason
        )
        return results[0]

    act.__name__, act.__doc__ = f"{verb}_job", summary
    return act


for _verb, _action, _summary in _ACTIONS:
    routes.post(
        f"/api/jobs/{{id}}/{_verb}",
        Role.OPERATOR,
        path=JobPath,
        body=ActionBody,
        responses={200: ActionResult},
        problems=(409,),
    )(_action_handler(_verb, _action, _summary))


@routes.post(
    "/api/jobs/{id}/retry",
    Role.OPERATOR,
    path=JobPath,
    body=RetryBody,
    responses={200: ActionResult},
    problems=(409,),
)
async def retry_job(request: ApiRequest) -> ActionResult:
    """Run a finished job again, with all its attempts; or a finished or paused one from one of its
    steps."""
    body: RetryBody = request.body
    (result,) = await request.operator.retry(
        request.path.id, by=request.by, reason=body.reason, from_step=body.from_step
    )
    return result


class DeletedBody(msgspec.Struct, frozen=True):
    id: int
    status: ActionStatus


@routes.post(
    "/api/jobs/{id}/delete",
    Role.ADMIN,
    path=JobPath,
    body=ActionBody,
    responses={200: DeletedBody},
    problems=(409,),
)
async def delete_job(request: ApiRequest) -> DeletedBody:
    """Delete a waiting or finished job with its events and log lines. A job that a worker holds is
    refused: cancel it first."""
    await request.operator.delete(request.path.id, by=request.by, reason=request.body.reason)
    return DeletedBody(request.path.id, ActionStatus.DONE)


@routes.post(
    "/targets/{target}/jobs/{id}/resume/",
    Role.OPERATOR,
    path=LanePath,
    body=ActionBody,
    responses={200: ActionResult},
    problems=(409,),
)
async def resume_in_lane(request: ApiRequest) -> ActionResult:
    """Resume a paused or failed job of the lane with this target. The lane continues. Jobs in
    other states are refused."""
    path: LanePath = request.path
    return await request.operator.resume_in_lane(
        path.target, path.id, request.by, request.body.reason
    )
