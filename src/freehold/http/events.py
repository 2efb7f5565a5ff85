"""What happens, as it happens: a stream of server-sent events.

Each event has its id, and a caller that was cut off goes on where it was with the header
Last-Event-ID, which browsers send by themselves. Events come in the order of their ids; one
whose transaction commits late is waited for (see `settled` in model/history.py), so that
nobody who goes on from the last id has missed one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from freehold.clock import monotonic
from freehold.errors import BadInput, StoreError
from freehold.http.request import ApiRequest, ApiService
from freehold.http.routes import Routes
from freehold.http.schemas import EventsQuery, given
from freehold.http_auth import Role
from freehold.json_views import event_document
from freehold.model.history import Event, EventKind
from freehold.operator import LARGEST_ID

routes = Routes()
STREAM = "text/event-stream"
_BATCH = 200
#: How soon a caller that was cut off should come back, in milliseconds.
_RETRY = "retry: 2000\n\n"


class EventMessage(msgspec.Struct, frozen=True):
    """One event of the stream; ``data`` is JSON: the event with its job, state, who and why."""

    id: str
    event: EventKind
    data: str


class EventStream(StreamingResponse):
    """Counted for as long as somebody listens."""

    def __init__(self, service: ApiService, content: AsyncIterator[str]) -> None:
        super().__init__(content, media_type=STREAM)
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._service.streaming():
            await super().__call__(scope, receive, send)


@routes.get(
    "/api/events",
    Role.VIEWER,
    query=EventsQuery,
    headers={"Last-Event-ID": {"type": "integer", "minimum": 0, "maximum": LARGEST_ID}},
    answers={200: EventMessage},
    media=STREAM,
)
async def follow_events(asked: ApiRequest) -> EventStream:
    """What happens to jobs besides their routine way, as server-sent events. Goes on from the
    header Last-Event-ID, from `after`, or from now."""
    asked.service.check_stream()
    after = _position(asked)
    if after is None:
        after = await asked.operate.newest_event()
    # Here, where an error is still an answer of its own.
    first = await asked.operate.events_after(after, _BATCH)
    return EventStream(asked.service, _message(asked, after, first))


def _position(asked: ApiRequest) -> int | None:
    said = asked.request.headers.get("last-event-id")
    if said is None:
        query: EventsQuery = asked.query
        return given(query.after)
    if not (said.isascii() and said.isdecimal() and int(said[:20]) <= LARGEST_ID):
        raise BadInput(f"Last-Event-ID {said[:40]!r}: give the id of an event")
    return int(said)


async def _message(asked: ApiRequest, after: int, events: list[Event]) -> AsyncIterator[str]:
    limits = asked.service.limits
    end = monotonic() + limits.stream_seconds
    silent_since = monotonic()
    yield _RETRY
    while True:
        for event in events:
            yield _text(event)
            after, silent_since = event.id, monotonic()
        if len(events) < _BATCH:
            if not asked.query.follow or asked.service.closing or monotonic() >= end:
                return
            if monotonic() - silent_since >= limits.stream_silent_seconds:
                silent_since = monotonic()
                yield ": nothing new\n\n"
            await asyncio.sleep(limits.stream_poll_seconds)
        try:
            events = await asked.operate.events_after(after, _BATCH)
        except StoreError:
            events = []  # it goes on when the store does


def _text(event: Event) -> str:
    data = msgspec.json.encode(event_document(event)).decode()
    return f"id: {event.id}\nevent: {event.kind}\ndata: {data}\n\n"
