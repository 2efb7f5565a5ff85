"""The page of one job."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from freehold.dashboard.forms import ReasonForm
from freehold.dashboard.page_request import Page, PageRequest
from freehold.dashboard.spans import lease_picture
from freehold.errors import FlowNotFound, IllegalTransition
from freehold.http.routes import Routes
from freehold.http.schemas import JobPath
from freehold.http_auth import Role
from freehold.model.bulk import BulkVerb, plan_amend, plan_delete
from freehold.model.flow import Flow
from freehold.model.job import Job
from freehold.model.operator_actions import NoChange, OperatorVerb, plan
from freehold.model.payload import stored_object
from freehold.model.private_names import arguments_text, value_text
from freehold.model.state import HOLDS_LANE
from freehold.model.step import Step

routes = Routes()
#: Jobs of a lane that are shown before and after one.
_NEIGHBOURS = 3
#: Marks of a policy that lead to other parts of the page.
_SHOWN_OTHERWISE = ("steps", "notify_end", "flow", "node", "callback_of")


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
    now = await request.operator.now()
    return Page(
        template="job.html",
        title=f"Job {job_id}: {job.task}",
        section="Jobs",
        values={
            "job": job,
            "causes": await request.operator.explain(job_id, seen_by=request.tenant),
            "timeline": detail.timeline,
            "leases": detail.leases[::-1],
            "picture": lease_picture(job_id, detail.leases, now),
            "numbers": {lease.token: lease.attempt for lease in detail.leases},
            "steps": detail.steps,
            "step_values": _step_values(detail.steps) if is_private_shown else {},
            "neighbours": await _neighbours(request, job),
            "holding": HOLDS_LANE,
            "log": detail.log,
            "complete": detail.complete,
            "policy": _policy(job),
            "flows": await _flows(request, job),
            "verbs": _verbs(request, job),
            "private": _private(job) if is_private_shown else None,
        },
        command=request.command_line("job", "show", job_id),
        # What was shown once is not loaded again.
        topics=() if is_private_shown else (f"job-{job_id}",),
    )


async def _neighbours(request: PageRequest, job: Job) -> list[Job]:
    """The jobs of its lane around it; none if it has left the lane."""
    if job.target is None or job.stage is None:
        return []
    return await request.operator.lane_jobs(job.target, job.id, _NEIGHBOURS)


async def _flows(request: PageRequest, job: Job) -> list[tuple[str, Flow]]:
    """The batch or workflow that it belongs to, and the one that it follows."""
    named = (("Part of", job.policy.flow), ("Follows", job.policy.callback_of))
    found = []
    for name, flow_id in named:
        if flow_id is not None:
            with suppress(FlowNotFound):  # its retention has expired
                found.append((name, await request.operator.flow(flow_id)))
    return found


def _step_values(steps: list[Step]) -> dict[str, str]:
    return {
        step.name: value_text(msgspec.json.decode(step.value))
        for step in steps
        if step.value is not None
    }


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
            link = request.url("actions", verb=verb.value, ids=job.id)
            found.append({"verb": verb.value, "refused": refused, "link": link})
    return [*found, *_edits(request, job)]


def _edits(request: PageRequest, job: Job) -> list[dict[str, Any]]:
    refused = None
    try:
        plan_amend(job)
    except IllegalTransition as error:
        refused = str(error)
    return [
        {"verb": "amend", "refused": refused, "link": request.url("jobs", job.id, "amend")},
        {"verb": "clone", "refused": None, "link": request.url("jobs", job.id, "clone")},
    ]


def _private(job: Job) -> dict[str, str | None]:
    report = job.report
    error = None if report is None else report.error
    return {
        "Arguments": arguments_text(job.args),
        "Result": None if report is None or report.result is None else value_text(report.result),
        "Traceback": None if error is None else error.trace,
    }


def _policy(job: Job) -> dict[str, Any]:
    """The settings of a job that differ from the default, without what the page shows anyway."""
    found = (stored_object(job.policy_json) or {}) if job.policy_json else {}
    return {name: value for name, value in found.items() if name not in _SHOWN_OTHERWISE}
