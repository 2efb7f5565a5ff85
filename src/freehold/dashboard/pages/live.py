"""The stream of changes for open pages: server-sent events with names of topics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from typing import Annotated

import msgspec
from msgspec import Meta

from freehold.clock import monotonic
from freehold.dashboard.page_request import PageRequest
from freehold.dashboard.watcher import AWAY, FLOW, JOB, RESTING, TOPICS, Listener
from freehold.errors import BadInput
from freehold.http.events import STREAM, EventStream
from freehold.http.routes import Routes
from freehold.http_auth import Role
from freehold.operations.input_checks import LARGEST_ID

routes = Routes()
_TOPICS_LIMIT = 8
#: How soon a stream notices that the service closes.
_WAKE_SECONDS = 1.0


class LiveQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``topics``, separated by commas."""

    topics: Annotated[str, Meta(max_length=200)]


@routes.get("/live", Role.VIEWER, query=LiveQuery, responses={200: str}, media=STREAM)
async def live(request: PageRequest) -> EventStream:
    """Names of topics that changed. No data is in the stream: a page loads itself again."""
    topics = _topics(request.query.topics)
    with ExitStack() as open_while_read:
        open_while_read.enter_context(request.service.streams.counted(request.caller))
        listener = open_while_read.enter_context(request.watcher.listening(topics))
        return EventStream(open_while_read.pop_all(), _messages(request, listener))


def _topics(text: str) -> frozenset[str]:
    found = frozenset(text.split(","))
    for topic in found:
        prefix = next((each for each in (JOB, FLOW) if topic.startswith(each)), None)
        number = topic.removeprefix(prefix or topic)
        is_number = number.isascii() and number.isdecimal() and len(number) <= 19
        is_one = is_number and 0 < int(number) <= LARGEST_ID
        if topic not in TOPICS and not is_one:
            raise BadInput(f"{topic[:40]!r} is no topic")
    if len(found) > _TOPICS_LIMIT:
        raise BadInput(f"{len(found)} topics: give at most {_TOPICS_LIMIT}")
    return found


async def _messages(request: PageRequest, listener: Listener) -> AsyncIterator[str]:
    limits = request.service.limits
    end = monotonic() + limits.stream_seconds
    silent_since = monotonic()
    yield "event: opened\ndata: -\n\n"
    while not request.service.closing and monotonic() < end:
        changed = await listener.changes(_WAKE_SECONDS)
        if changed:
            silent_since = monotonic()
            for event in _events(changed, listener.rest_seconds):
                yield event
        elif monotonic() - silent_since >= limits.stream_silent_seconds:
            silent_since = monotonic()
            yield ": nothing new\n\n"


def _events(changed: set[str], rest_seconds: float) -> Iterator[str]:
    if RESTING in changed:
        yield f"event: resting\ndata: {rest_seconds:.0f}\n\n"
    if topics := changed - {RESTING}:
        kind = "away" if AWAY in topics else "changed"
        yield f"event: {kind}\ndata: {','.join(sorted(topics))}\n\n"
