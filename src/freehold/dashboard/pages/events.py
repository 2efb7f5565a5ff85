"""The newest events of all jobs."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from freehold.dashboard.page_request import Page, PageRequest
from freehold.http.routes import Routes
from freehold.http.schemas import Id, value_or_none
from freehold.http_auth import Role
from freehold.model.history import EventKind

routes = Routes()
_SHOWN = 100


class EventListQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``before``: the oldest event of the page before. ``kind``: only these, of the events that
    the page looks at. ``upto``: the newest event of a page that is loaded again: newer ones are
    counted, not inserted."""

    before: Id | UnsetType = UNSET
    upto: Id | UnsetType = UNSET
    kind: tuple[EventKind, ...] = ()


@routes.get("/events", Role.VIEWER, query=EventListQuery, responses={200: str})
async def event_list(request: PageRequest) -> Page:
    """Events, newest first. Routine transitions have none."""
    query: EventListQuery = request.query
    newest = value_or_none(query.upto) or await request.operator.newest_event()
    before = value_or_none(query.before) or newest + 1
    after = max(0, before - 1 - _SHOWN)
    events = [e for e in await request.operator.events_after(after, _SHOWN) if e.id < before]
    is_first = query.before is UNSET
    later = await request.operator.events_after(newest, _SHOWN) if query.upto is not UNSET else []
    shown = [event for event in events if not query.kind or event.kind in query.kind]
    return Page(
        template="events.html",
        title="Events",
        section="Events",
        values={
            "events": shown[::-1],
            "kinds": query.kind,
            "all_kinds": sorted({event.kind for event in events} | set(query.kind)),
            "older": after + 1 if after else None,
            "is_first": is_first,
            "new": sum(not query.kind or event.kind in query.kind for event in later),
            "page_size": _SHOWN,
        },
        command="curl -H 'Authorization: Bearer …' …/api/events",
        topics=("events",) if is_first else (),
        refresh=request.url(
            "events", kind=[each.value for each in query.kind], upto=newest or None
        ),
    )
