"""Edits of one job: amend it while it waits, or clone it with other values and arguments.

First the values, then what they lead to, then it is done: each is a page of its own, so that
nothing is written that was not shown before.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from freehold.dashboard.page_request import Page, PageRequest, Redirect
from freehold.errors import BadArguments, BadInput, IllegalTransition
from freehold.http.routes import Routes
from freehold.http.schemas import JobPath, Name, Reason, Wait
from freehold.http_auth import Role
from freehold.model.bulk import Amendment
from freehold.model.job import PRIORITY_LIMIT, Job
from freehold.model.payload import stored_object
from freehold.model.private_names import arguments_text, unmasked
from freehold.model.retry import MAX_ATTEMPTS_LIMIT
from freehold.operator import CloneChanges

routes = Routes()
_REFUSED = (BadInput, BadArguments, IllegalTransition)


class Values(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Of the form; what is empty stays as it is. ``run_at`` is in UTC, without a zone."""

    priority: Annotated[int, Meta(ge=-PRIORITY_LIMIT, le=PRIORITY_LIMIT)] | None = None
    queue: Name | None = None
    run_at: datetime | None = None
    delay_seconds: Wait | None = None
    max_attempts: Annotated[int, Meta(ge=1, le=MAX_ATTEMPTS_LIMIT)] | None = None

    async def time(self, request: PageRequest) -> datetime | None:
        """A delay counts from now, by the store's clock."""
        if self.delay_seconds is not None:
            now = await request.operator.now()
            return (now + timedelta(seconds=self.delay_seconds)).replace(microsecond=0)
        if self.run_at is None or self.run_at.tzinfo is not None:
            return self.run_at
        return self.run_at.replace(tzinfo=UTC)


class AmendForm(Values, frozen=True, kw_only=True):
    reason: Reason | None = None


class CloneForm(Values, frozen=True, kw_only=True):
    """``args``: other arguments, a JSON object; None: those of the old job. ``shown``: the form
    has shown the old ones, so what is still masked in them is not changed."""

    args: Annotated[str, Meta(max_length=1_000_000)] | None = None
    reason: Reason | None = None


def _changed(values: Values, job: Job, run_at: datetime | None) -> dict[str, Any]:
    """Only what differs from the job."""
    given = {
        "priority": values.priority,
        "queue": values.queue,
        "run_at": run_at,
        "max_attempts": values.max_attempts,
    }
    return {name: value for name, value in given.items() if value != getattr(job, name)}


def _options(changes: dict[str, Any]) -> list[str]:
    """As `freehold job amend` and `clone` take them."""
    names = {"priority": "--priority", "queue": "--to-queue", "run_at": "--run-at"}
    found = []
    for name, value in changes.items():
        if value is not None:
            text = value.isoformat() if isinstance(value, datetime) else str(value)
            found.append(f"{names.get(name, '--max-attempts')}={text}")
    return found


# -- amend -----------------------------------------------------------------------------------


@routes.get("/jobs/{id}/amend", Role.OPERATOR, path=JobPath, query=Values, responses={200: str})
async def amend_page(request: PageRequest) -> Page:
    """The values of a waiting job; with changed ones, what they lead to. Nothing is written."""
    return await _amend_page(request, request.query)


@routes.post("/jobs/{id}/amend", Role.OPERATOR, path=JobPath, body=AmendForm, responses={303: str})
async def amend(request: PageRequest) -> Page | Redirect:
    job_id, form = request.path.id, request.body
    job = (await request.operator.show(job_id)).job
    changes = _changed(form, job, await form.time(request))
    try:
        await request.operator.amend(
            job_id, changes=Amendment(**changes), by=request.by, reason=form.reason
        )
    except _REFUSED as error:
        return await _amend_page(request, form, str(error))
    return Redirect(request.url("jobs", job_id), f"Job {job_id} is amended.")


async def _amend_page(request: PageRequest, values: Values, problem: str | None = None) -> Page:
    job_id: int = request.path.id
    job = (await request.operator.show(job_id)).job
    changes = _changed(values, job, await values.time(request))
    changes = {name: value for name, value in changes.items() if value is not None}
    if changes and problem is None:
        problem = await _refusal(request, job_id, Amendment(**changes))
    return Page(
        template="amend.html",
        title=f"Amend job {job_id}",
        section="Jobs",
        values={
            "job": job,
            "changes": changes,
            "problem": problem,
            "equal": request.command_line("job", "amend", job_id, *_options(changes)),
        },
        status=422 if problem else 200,
    )


async def _refusal(request: PageRequest, job_id: int, changes: Amendment) -> str | None:
    try:
        preview = await request.operator.preview("amend", [job_id], changes)
    except BadInput as error:
        return str(error)
    return preview.jobs[0].cause


# -- clone -----------------------------------------------------------------------------------


@routes.get("/jobs/{id}/clone", Role.OPERATOR, path=JobPath, responses={200: str})
async def clone_page(request: PageRequest) -> Page:
    """The values of a new job like this one. Its arguments are those of the old one."""
    return await _clone_page(request, CloneForm())


@routes.post(
    "/jobs/{id}/clone/arguments",
    Role.OPERATOR,
    path=JobPath,
    body=CloneForm,
    responses={200: str},
)
async def edit_arguments(request: PageRequest) -> Page:
    """The same form with the old arguments, to be edited. The audit records it."""
    await request.operator.record_private_look(request.path.id, request.by, "to clone it")
    job = (await request.operator.show(request.path.id)).job
    form = msgspec.structs.replace(request.body, args=arguments_text(job.args))
    return await _clone_page(request, form)


@routes.post(
    "/jobs/{id}/clone/preview", Role.OPERATOR, path=JobPath, body=CloneForm, responses={200: str}
)
async def preview_clone(request: PageRequest) -> Page:
    """The job that would be made, after all checks. Nothing is written."""
    return await _clone_page(request, request.body, is_preview=True)


@routes.post("/jobs/{id}/clone", Role.OPERATOR, path=JobPath, body=CloneForm, responses={303: str})
async def clone(request: PageRequest) -> Page | Redirect:
    job_id, form = request.path.id, request.body
    job = (await request.operator.show(job_id)).job
    try:
        changes = await _clone_changes(request, job, form)
        made = await request.operator.clone(job_id, changes, by=request.by, reason=form.reason)
    except _REFUSED as error:
        return await _clone_page(request, form, problem=str(error))
    return Redirect(
        request.url("jobs", made.id), f"Job {made.id} is enqueued, a clone of job {job_id}."
    )


async def _clone_changes(request: PageRequest, job: Job, form: CloneForm) -> CloneChanges:
    args = None
    if form.args is not None:
        values = stored_object(form.args)
        if values is None:
            raise BadInput('the arguments are not a JSON object: write {"name": value, ...}')
        stored = stored_object(job.args) or {}
        args = msgspec.json.encode(unmasked(values, stored)).decode()
    changed = _changed(form, job, await form.time(request))
    return CloneChanges(args=args, **changed)


async def _clone_page(
    request: PageRequest, form: CloneForm, *, is_preview: bool = False, problem: str | None = None
) -> Page:
    job_id: int = request.path.id
    job = (await request.operator.show(job_id)).job
    made, options = None, []
    try:
        changes = await _clone_changes(request, job, form)
        options = _options({**msgspec.structs.asdict(changes), "args": None})
        if is_preview:
            made = await request.operator.preview_clone(job_id, changes)
    except _REFUSED as error:
        problem = str(error)
    other = ["--args", "{…}"] if form.args is not None else []
    return Page(
        template="clone.html",
        title=f"Clone job {job_id}",
        section="Jobs",
        values={
            "job": job,
            "form": form,
            "run_at": await form.time(request),
            "made": None if problem else made,
            "problem": problem,
            "equal": request.command_line("job", "clone", job_id, *other, *options),
        },
        status=422 if problem else 200,
    )
