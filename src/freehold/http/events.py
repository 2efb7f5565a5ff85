"""The stream of events: server-sent events (SSE).

After a lost connection a client continues with the header Last-Event-ID, which browsers send by
themselves. Events come in the order of their ids. The stream waits for an event whose transaction
commits late (see `settled` in model/history.py), so that a client that continues from its last id
misses none.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import ExitStack

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from freehold.clock import monotonic
from freehold.errors import BadInput, StoreError
from freehold.event_follower import EventFollower
from freehold.http.request import ApiRequest
from freehold.http.routes import Routes
from freehold.http.schemas import EventsQuery, value_or_none
from freehold.http_auth import Role
from freehold.json_views import event_document
from freehold.model.history import Event, EventKind
from freehold.operations.input_checks import LARGEST_ID

routes = Routes()
STREAM = "text/event-stream"
_BATCH = 200
_ID_DIGITS = len(str(LARGEST_ID))
#: How soon a client should reconnect, in milliseconds.
RETRY = "retry: 2000\n\n"


class EventMessage(msgspec.Struct, frozen=True):
    """One event of the stream. ``data`` is JSON: the event with its job, state, author and
    reason."""

    id: str
    event: EventKind
    data: str


class EventStream(StreamingResponse):
    """Counted, and a listener, from the request on, for as long as its connection is open."""

    def __init__(self, counted: ExitStack, content: AsyncIterator[str]) -> None:
        super().__init__(content, media_type=STREAM)
        self._counted = counted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._counted:
            await super().__call__(scope, receive, send)


@routes.get(
    "/api/events",
    Role.VIEWER,
    query=EventsQuery,
    headers={"Last-Event-ID": {"type": "integer", "minimum": 0, "maximum": LARGEST_ID}},
    responses={200: EventMessage},
    media=STREAM,
)
async def follow_events(request: ApiRequest) -> EventStream:
    """Follow the events of all jobs as server-sent events. The stream starts after the header
    Last-Event-ID, after `after`, or now. Routine transitions have no event."""
    with ExitStack() as counted:
        counted.enter_context(request.service.streams.counted(request.caller))
        follower = request.service.follower(request.app)
        counted.enter_context(follower.listening())
        after = _position(request)
        if after is None:
            after = await request.operator.newest_event()
        # Read the first events here, where an error can still become an error response.
        first = await request.operator.events_after(after, _BATCH)
        return EventStream(counted.pop_all(), _messages(request, follower, after, first))


def _position(request: ApiRequest) -> int | None:
    last_id = request.http.headers.get("last-event-id")
    if last_id is None:
        query: EventsQuery = request.query
        return value_or_none(query.after)
    digits = last_id.isascii() and last_id.isdecimal() and len(last_id) <= _ID_DIGITS
    if not (digits and int(last_id) <= LARGEST_ID):
        raise BadInput(f"Last-Event-ID {last_id[:40]!r}: give the id of an event")
    return int(last_id)


async def _messages(
    request: ApiRequest, follower: EventFollower, after: int, events: list[Event]
) -> AsyncIterator[str]:
    limits = request.service.limits
    end = monotonic() + limits.stream_seconds
    silent_since = monotonic()
    yield RETRY
    while True:
        for event in events:
            yield _text(event)
            after, silent_since = event.id, monotonic()
        if len(events) < _BATCH:
            if not request.query.follow or request.service.closing or monotonic() >= end:
                return
            if monotonic() - silent_since >= limits.stream_silent_seconds:
                silent_since = monotonic()
                yield ": nothing new\n\n"
            await follower.wait(after, limits.stream_poll_seconds)
        try:
            events = await follower.after(after, _BATCH)
        except StoreError:
            events = []  # the stream continues when the store is available again


def _text(event: Event) -> str:
    data = msgspec.json.encode(event_document(event)).decode()
    return f"id: {event.id}\nevent: {event.kind}\ndata: {data}\n\n"
