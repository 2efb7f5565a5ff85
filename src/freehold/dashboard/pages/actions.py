"""Actions on jobs: first what will happen, job by job or counted by cause; then it is done.

On chosen jobs, or on all that match a filter, which is a bulk operation. The preview is a GET, so
that its address can be sent to a colleague before it is done.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from freehold.dashboard.page_request import Page, PageRequest, Redirect
from freehold.errors import BadInput
from freehold.http.routes import Routes
from freehold.http.schemas import Id, Key, Reason
from freehold.http_auth import Role
from freehold.model.bulk import BulkPreview, BulkVerb, JobPreview, PreviewStatus
from freehold.model.plural import count
from freehold.model.state import State
from freehold.store.types import JobFilter

routes = Routes()
#: Above this number a reason is needed, and above the other one the number itself.
REASON_ABOVE = 100
NUMBER_ABOVE = 1_000
ActionVerb = Literal["cancel", "pause", "resume", "retry", "submit", "delete"]
Text = Annotated[str, Meta(max_length=2000)]
_DONE = {
    "cancel": "canceled",
    "pause": "paused",
    "resume": "resumed",
    "retry": "retried",
    "submit": "submitted",
    "delete": "deleted",
}


class ActionQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``ids``: the chosen jobs; without them, all jobs that match ``q`` and ``state``."""

    verb: ActionVerb
    ids: tuple[Id, ...] = ()
    q: Text = ""
    state: tuple[State, ...] = ()
    #: Retry one job from this step.
    step: Key | None = None


class ActionForm(ActionQuery, frozen=True, kw_only=True):
    """``number``: of the jobs, as its visitor has written it."""

    reason: Reason | None = None
    number: int | None = None


class Preview(msgspec.Struct, frozen=True):
    """Counts, and for chosen jobs each of them."""

    counts: BulkPreview
    jobs: tuple[JobPreview, ...] = ()

    @property
    def changed(self) -> int:
        return sum(self.counts.done.values()) + self.counts.requested


@routes.get("/actions", Role.OPERATOR, query=ActionQuery, responses={200: str})
async def preview_action(request: PageRequest) -> Page:
    """What would happen. Nothing is written."""
    query: ActionQuery = request.query
    _check_role(request, query)
    return _page(request, query, await _preview(request, query))


@routes.post("/actions", Role.OPERATOR, body=ActionForm, responses={303: str})
async def do_action(request: PageRequest) -> Page | Redirect:
    """Refused jobs of a choice are left out, as in the preview."""
    form: ActionForm = request.body
    _check_role(request, form)
    preview = await _preview(request, form)
    if problem := _missing(form, preview):
        return _page(request, form, preview, problem)
    if form.ids:
        return await _act(request, form, preview)
    operation = await request.operator.bulk.start(
        BulkVerb(form.verb), await _filter(request, form), by=request.by, reason=form.reason
    )
    done = f"Bulk operation {operation.id}: {count(operation.jobs, 'job')}."
    return Redirect(request.url("bulk", operation.id), done)


async def _act(request: PageRequest, form: ActionForm, preview: Preview) -> Redirect:
    ids = [each.id for each in preview.jobs if each.status is not PreviewStatus.REFUSED]
    if ids:
        act = getattr(request.operator, form.verb)
        more = {} if form.step is None else {"from_step": form.step}
        await act(*ids, by=request.by, reason=form.reason, **more)
    done = f"{count(len(ids), 'job')} {_DONE[form.verb]}"
    if preview.counts.requested:
        done += f", of {preview.counts.requested} of which the worker was asked"
    if refused := len(form.ids) - len(ids):
        done += f"; {refused} refused"
    if form.verb == "delete" or len(form.ids) > 1:
        return Redirect(request.url("jobs"), f"{done}.")
    return Redirect(request.url("jobs", form.ids[0]), f"{done}.")


def _check_role(request: PageRequest, query: ActionQuery) -> None:
    if query.verb == "delete":
        request.check_role(Role.ADMIN, "deleting jobs")
    if query.step is not None and (query.verb != "retry" or len(query.ids) != 1):
        raise BadInput("a step is for the retry of one job")


async def _filter(request: PageRequest, query: ActionQuery) -> JobFilter:
    chosen = JobFilter(states=frozenset(query.state))
    return await request.operator.search(query.q, chosen)


async def _preview(request: PageRequest, query: ActionQuery) -> Preview:
    if query.ids:
        found = await request.operator.preview(query.verb, query.ids)
        return Preview(found.counts, found.jobs)
    if query.verb == "submit":
        raise BadInput("submit is for chosen jobs: tick them")
    filter = await _filter(request, query)
    return Preview(await request.operator.bulk.preview(BulkVerb(query.verb), filter))


def _missing(form: ActionForm, preview: Preview) -> str | None:
    jobs = preview.counts.jobs
    if not preview.changed:
        return "there is nothing to do"
    if form.reason is None and (jobs > REASON_ABOVE or form.verb in ("cancel", "delete")):
        return "give a reason"
    if jobs > NUMBER_ABOVE and form.number != jobs:
        return f"write the number of jobs, {jobs}, to confirm it"
    return None


def _page(
    request: PageRequest, query: ActionQuery, preview: Preview, problem: str | None = None
) -> Page:
    jobs = preview.counts.jobs
    return Page(
        template="action.html",
        title=f"{query.verb.capitalize()} {count(jobs, 'job')}",
        section="Jobs",
        values={
            "query": query,
            "preview": preview,
            "problem": problem,
            "refused": sum(preview.counts.refused.values()),
            "needs_reason": jobs > REASON_ABOVE or query.verb in ("cancel", "delete"),
            "number": jobs if jobs > NUMBER_ABOVE else None,
            "reason": getattr(query, "reason", None) or "",
            "equal": _command(request, query),
            "back": _back(request, query),
        },
        status=422 if problem else 200,
    )


def _back(request: PageRequest, query: ActionQuery) -> str:
    if len(query.ids) == 1:
        return request.url("jobs", query.ids[0])
    return request.url("jobs", q=query.q, state=[each.value for each in query.state])


def _command(request: PageRequest, query: ActionQuery) -> str:
    if query.ids:
        step = [] if query.step is None else ["--from", query.step]
        return request.command_line("job", query.verb, *query.ids, *step)
    states = [f"--state={state.value}" for state in query.state]
    return request.command_line("jobs", *([query.q] if query.q else []), *states, query.verb)
