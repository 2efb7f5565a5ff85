"""Jobs: enqueue, list, show, explain, and the operator's verbs."""

from __future__ import annotations

from typing import Any

import msgspec

from leasehold.access import Role
from leasehold.documents import JobDocument, StoryDocument, job_document, story_document
from leasehold.http.asked import Asked, Done
from leasehold.http.routes import Handler, Routes
from leasehold.http.shapes import Act, Enqueue, JobPath, LanePath, Listed, Shown, given
from leasehold.model import payload
from leasehold.model.explain import Cause
from leasehold.model.job import NewJob
from leasehold.model.operation import Answer, Verb
from leasehold.store.contract import Filter
from leasehold.tasks import Options, Registry, raw_job

routes = Routes()


class Enqueued(msgspec.Struct, frozen=True):
    """``created`` is false where a job was there already, by its key: ``id`` is that job's."""

    id: int
    task: str
    created: bool


class JobPage(msgspec.Struct, frozen=True):
    """``next`` is the ``before`` of the next page, null after the last."""

    jobs: list[JobDocument]
    next: int | None


class Explained(msgspec.Struct, frozen=True):
    id: int
    causes: list[Cause]


@routes.post(
    "/api/jobs", Role.OPERATOR, body=Enqueue, answers={200: Enqueued, 201: Enqueued}
)  # fmt: skip
async def enqueue(asked: Asked) -> Done:
    """Enqueue a job. 201: it is new; 200: it was there already."""
    new = _new_job(asked.app.tasks, asked.body)
    handle = await asked.app.asubmit(new)
    status = 201 if handle.created else 200
    return Done(status, Enqueued(handle.id, handle.task, handle.created))


def _new_job(tasks: Registry, body: Enqueue) -> NewJob:
    """Like `leasehold enqueue`: a known task checks its arguments, and has its own options."""
    args = payload.encode(f"the call of task {body.task}", body.args)
    options = _options(body)
    if body.raw or not tasks.names:
        return raw_job(body.task, Options(**options), args, body.pending)
    return tasks.get(body.task).using(**options).prepare_json(args, pending=body.pending)


def _options(body: Enqueue) -> dict[str, Any]:
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


@routes.get("/api/jobs", Role.VIEWER, query=Listed, answers={200: JobPage})
async def list_jobs(asked: Asked) -> JobPage:
    """Jobs, newest first, a page at a time. Arguments are shown to operators who ask for them."""
    query: Listed = asked.query
    if query.args:
        asked.check_role(Role.OPERATOR, "showing arguments")
    page = await asked.operate.jobs(
        Filter(
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
    return JobPage(found, page.next)


@routes.get(
    "/api/jobs/{id}", Role.VIEWER, path=JobPath, query=Shown, answers={200: StoryDocument}
)  # fmt: skip
async def show_job(asked: Asked) -> StoryDocument:
    """A job with all that happened to it. Arguments and tracebacks are shown to operators who
    ask for them."""
    query: Shown = asked.query
    if query.args or query.trace:
        asked.check_role(Role.OPERATOR, "showing arguments and tracebacks")
    story = await asked.operate.show(asked.path.id)
    return story_document(story, show_args=query.args, show_trace=query.trace)


@routes.get("/api/jobs/{id}/explain", Role.VIEWER, path=JobPath, answers={200: Explained})
async def explain_job(asked: Asked) -> Explained:
    """Why a job is not running, and what to do about it."""
    return Explained(asked.path.id, await asked.operate.explain(asked.path.id))


_VERBS = {
    Verb.CANCEL: "End a job; one that runs is asked to stop. For a failed one: resolved.",
    Verb.PAUSE: "Hold a job back until it is resumed; one that runs is asked to stop.",
    Verb.RESUME: "Let a paused or failed job go on.",
    Verb.RETRY: "Run a finished job again, with all its attempts.",
    Verb.SUBMIT: "Put a pending job into the queue.",
}


def _acting(verb: Verb, summary: str) -> Handler:
    async def act(asked: Asked) -> Answer:
        answers = await asked.operate.act(verb, [asked.path.id], asked.by, asked.body.reason)
        return answers[0]

    act.__name__, act.__doc__ = f"{verb}_job", summary
    return act


for _verb, _summary in _VERBS.items():
    routes.post(
        f"/api/jobs/{{id}}/{_verb}",
        Role.OPERATOR,
        path=JobPath,
        body=Act,
        answers={200: Answer},
        problems=(409,),
    )(_acting(_verb, _summary))


@routes.post(
    "/targets/{target}/jobs/{id}/resume/",
    Role.OPERATOR,
    path=LanePath,
    body=Act,
    answers={200: Answer},
    problems=(409,),
)
async def resume_in_lane(asked: Asked) -> Answer:
    """Put a paused or failed job of this target back into the queue; its lane goes on. Any
    other state is refused."""
    path: LanePath = asked.path
    return await asked.operate.resume_in_lane(path.target, path.id, asked.by, asked.body.reason)
