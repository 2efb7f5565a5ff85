"""Jobs: the list with its filter, and the page of one job."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import RedirectResponse, Response

from freehold.dashboard.forms import ReasonForm
from freehold.dashboard.page_request import Page, PageRequest
from freehold.errors import BadInput, IllegalTransition
from freehold.http.routes import Routes
from freehold.http.schemas import Id, JobPath, value_or_none
from freehold.http_auth import Role
from freehold.model.bulk import BulkVerb, plan_delete
from freehold.model.job import Job
from freehold.model.operator_actions import NoChange, OperatorVerb, plan
from freehold.model.payload import stored_object
from freehold.model.private_names import arguments_text, value_text
from freehold.model.state import LEASED, State
from freehold.store.types import JobCounts, JobFilter

routes = Routes()
_SHOWN = 50
#: Chips count up to this number.
_BOUND = 1_000
Text = Annotated[str, Meta(max_length=2000)]


class JobPageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``q``: a search; ``before``: the cursor of the page before."""

    q: Text = ""
    state: tuple[State, ...] = ()
    before: Id | UnsetType = UNSET


@routes.get("/jobs", Role.VIEWER, query=JobPageQuery, responses={200: str})
async def job_list(request: PageRequest) -> Page | Response:
    """Jobs, newest first, with their filter."""
    query: JobPageQuery = request.query
    if query.q.strip().isascii() and query.q.strip().isdecimal():
        return RedirectResponse(request.url("jobs", int(query.q)), 303)
    problem, filter = None, JobFilter(limit=_SHOWN)
    try:
        filter = await _filter(request, query)
        page = await request.operator.jobs(filter, reads=request.reads)
    except BadInput as error:
        problem, page = str(error), None
    jobs = () if page is None else page.jobs
    counts = await request.operator.counts(_BOUND)
    values = {
        "search": query.q,
        "states": query.state,
        "problem": problem,
        "found": page,
        "jobs": jobs,
        "causes": await request.operator.explain_many(
            [job.id for job in jobs if job.state is State.QUEUED], seen_by=request.tenant
        ),
        "chips": _chips(request, query, counts),
        "bound": _BOUND,
        "is_filtered": bool(query.q or query.state),
        "is_first": query.before is UNSET,
    }
    return Page(
        template="jobs.html",
        title="Jobs",
        section="Jobs",
        values=values,
        command=_command(request, query),
        topics=("jobs",),
    )


async def _filter(request: PageRequest, query: JobPageQuery) -> JobFilter:
    before = value_or_none(query.before)
    chosen = JobFilter(states=frozenset(query.state), before=before, limit=_SHOWN)
    return await request.operator.search(query.q, chosen)


def _chips(request: PageRequest, query: JobPageQuery, counts: JobCounts) -> list[dict[str, Any]]:
    """A link for each state; those that an index counts have a number."""
    counted = {
        State.PENDING: counts.pending,
        State.RUNNING: counts.leased,
        State.PAUSED: counts.paused,
    }
    single = [(state, (state,)) for state in State if state not in LEASED]
    states = [(State.RUNNING, tuple(sorted(LEASED))), *single]
    return [
        {
            "state": state,
            "count": counted.get(state),
            "is_on": set(chosen) <= set(query.state),
            "link": request.url("jobs", q=query.q, state=[each.value for each in chosen]),
        }
        for state, chosen in states
    ]


def _command(request: PageRequest, query: JobPageQuery) -> str:
    states = [f"--state={state.value}" for state in query.state]
    return request.command_line("jobs", *([query.q] if query.q else []), *states)


@routes.get("/jobs/{id}", Role.VIEWER, path=JobPath, responses={200: str})
async def job_page(request: PageRequest) -> Page:
    """One job: why it is not running, its timeline, attempts, log and settings."""
    return await _job_page(request, is_private_shown=False)


@routes.post(
    "/jobs/{id}/private", Role.OPERATOR, path=JobPath, body=ReasonForm, responses={200: str}
)
async def show_private(request: PageRequest) -> Page:
    """The same page with arguments, result and traceback. The audit records it."""
    await request.operator.record_private_look(request.path.id, request.by, request.body.reason)
    return await _job_page(request, is_private_shown=True)


async def _job_page(request: PageRequest, *, is_private_shown: bool) -> Page:
    job_id: int = request.path.id
    detail = await request.operator.show(job_id)
    job = detail.job
    causes = await request.operator.explain(job_id, seen_by=request.tenant)
    return Page(
        template="job.html",
        title=f"Job {job_id}: {job.task}",
        section="Jobs",
        values={
            "job": job,
            "causes": causes,
            "timeline": detail.timeline,
            "log": detail.log,
            "complete": detail.complete,
            "policy": _policy(job),
            "verbs": _verbs(request, job),
            "private": _private(job) if is_private_shown else None,
        },
        command=request.command_line("job", "show", job_id),
        # What was shown once is not loaded again.
        topics=() if is_private_shown else (f"job-{job_id}",),
    )


_VERBS = (*OperatorVerb, BulkVerb.DELETE)


def _verbs(request: PageRequest, job: Job) -> list[dict[str, Any]]:
    """Each verb with its effect on this job, refused ones with the reason."""
    if not request.may(Role.OPERATOR):
        return []
    found = []
    for verb in _VERBS:
        refused = None
        try:
            step = plan_delete(job) if verb is BulkVerb.DELETE else plan(OperatorVerb(verb), job)
        except IllegalTransition as error:
            step, refused = None, str(error)
        if verb is BulkVerb.DELETE and not request.may(Role.ADMIN):
            refused = "deleting jobs needs the role admin"
        if not isinstance(step, NoChange):
            found.append({"verb": verb.value, "refused": refused})
    return found


def _private(job: Job) -> dict[str, str | None]:
    report = job.report
    error = None if report is None else report.error
    return {
        "Arguments": arguments_text(job.args),
        "Result": None if report is None or report.result is None else value_text(report.result),
        "Traceback": None if error is None else error.trace,
    }


def _policy(job: Job) -> dict[str, Any]:
    """The settings of a job that differ from the default."""
    return (stored_object(job.policy_json) or {}) if job.policy_json else {}
