"""The list of jobs with its filter. A list that is loaded again keeps its rows: new ones are
counted, not inserted, so that nothing moves while it is read."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.responses import RedirectResponse, Response

from freehold.dashboard.page_request import Page, PageRequest
from freehold.errors import BadInput
from freehold.http.routes import Routes
from freehold.http.schemas import Id, value_or_none
from freehold.http_auth import Role
from freehold.model.job import Job
from freehold.model.state import LEASED, State
from freehold.store.types import JobCounts, JobFilter, JobPage

routes = Routes()
_SHOWN = 50
#: Chips count up to this number.
_BOUND = 1_000
Text = Annotated[str, Meta(max_length=2000)]


class JobPageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``q``: a search; ``before``: the cursor of the page before; ``shown``: the rows of a page
    that is loaded again."""

    q: Text = ""
    state: tuple[State, ...] = ()
    before: Id | UnsetType = UNSET
    shown: tuple[Id, ...] = ()


class Rows(NamedTuple):
    """``new``: jobs that match and have no row; ``left``: rows that match no longer."""

    page: JobPage
    jobs: tuple[Job, ...]
    next: int | None
    new: int = 0
    left: frozenset[int] = frozenset()


@routes.get("/jobs", Role.VIEWER, query=JobPageQuery, responses={200: str})
async def job_list(request: PageRequest) -> Page | Response:
    """Jobs, newest first, with their filter."""
    query: JobPageQuery = request.query
    if query.q.strip().isascii() and query.q.strip().isdecimal():
        return RedirectResponse(request.url("jobs", int(query.q)), 303)
    if len(query.shown) > _SHOWN:
        raise BadInput(f"{len(query.shown)} rows: a page has at most {_SHOWN}")
    problem, rows = None, Rows(JobPage((), None), (), None)
    try:
        rows = await _rows(request, query)
    except BadInput as error:
        problem = str(error)
    counts = await request.operator.counts(_BOUND)
    waiting = [job.id for job in rows.jobs if job.state is State.QUEUED]
    values = {
        "search": query.q,
        "states": query.state,
        "problem": problem,
        "rows": rows,
        "causes": await request.operator.explain_many(waiting, seen_by=request.tenant),
        "chips": _chips(request, query, counts),
        "bound": _BOUND,
        "page_size": _SHOWN,
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
        refresh=_address(request, query, shown=[job.id for job in rows.jobs]),
    )


async def _rows(request: PageRequest, query: JobPageQuery) -> Rows:
    page = await request.operator.jobs(await _filter(request, query), reads=request.reads)
    if not query.shown:
        return Rows(page, page.jobs, page.next)
    kept = await request.operator.jobs_by_id(query.shown)
    matching = {job.id for job in page.jobs}
    oldest = min(query.shown)
    # A full page has no room for older jobs, whatever leaves it.
    floor = oldest if len(query.shown) == _SHOWN else 0
    new = sum(floor < each and each not in kept for each in matching)
    examined = page.next or 0
    left = frozenset(each for each in kept if each not in matching and each >= examined)
    has_older = page.next is not None or any(each < oldest for each in matching)
    return Rows(
        page,
        tuple(kept.values()),
        min(page.next or oldest, oldest) if has_older else None,
        new if query.before is UNSET else 0,
        left,
    )


def _address(request: PageRequest, query: JobPageQuery, **more: Any) -> str:
    states = [each.value for each in query.state]
    return request.url("jobs", q=query.q, state=states, before=value_or_none(query.before), **more)


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
