"""One job as server-sent events: for a page that shows its progress.

A stream begins with the job as it is, so a client that connects again needs no position.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from typing import Literal

import msgspec

from freehold.app import Freehold
from freehold.clock import monotonic
from freehold.errors import JobNotFound, StoreError
from freehold.http.events import RETRY, STREAM, EventStream
from freehold.http.request import ApiRequest
from freehold.http.request_limits import RequestLimits
from freehold.http.routes import Routes
from freehold.http.schemas import JobPath
from freehold.http_auth import Role
from freehold.json_views import job_document
from freehold.model.job import Job
from freehold.operations.input_checks import LARGEST_ID

routes = Routes()


class JobMessage(msgspec.Struct, frozen=True):
    """``job``: its state, attempt or progress has changed; ``end``: it has ended, and so does the
    stream. ``data`` is JSON: the job, without its arguments."""

    event: Literal["job", "end"]
    data: str


@routes.get(
    "/api/jobs/{id}/events",
    Role.VIEWER,
    path=JobPath,
    responses={200: JobMessage},
    media=STREAM,
)
async def follow_job(request: ApiRequest) -> EventStream:
    """Follow one job as server-sent events. A message `job` comes at once and whenever its state,
    attempt or progress has changed, and `end` when it has ended; then close the connection."""
    with ExitStack() as counted:
        service = request.service
        counted.enter_context(service.streams.counted(request.caller))
        # Read here, where an error can still become an error response.
        job = await read_job(request.app, request.path.id)
        messages = job_messages(request.app, job, service.limits, lambda: service.closing)
        return EventStream(counted.pop_all(), messages)


async def read_job(app: Freehold, job_id: int) -> Job:
    if 0 < job_id <= LARGEST_ID:
        found = await app._client.awaited.read([job_id])
        if job_id in found:
            return found[job_id]
    raise JobNotFound(f"there is no job {job_id}")


async def job_messages(
    app: Freehold, job: Job, limits: RequestLimits, is_closing: Callable[[], bool]
) -> AsyncIterator[str]:
    end = monotonic() + limits.stream_seconds
    sent, silent_since = "", monotonic()
    yield RETRY
    while True:
        text = _text(job)
        if text != sent:
            yield text
            sent, silent_since = text, monotonic()
        if job.report is not None or is_closing() or monotonic() >= end:
            return
        if monotonic() - silent_since >= limits.stream_silent_seconds:
            silent_since = monotonic()
            yield ": nothing new\n\n"
        await asyncio.sleep(limits.stream_poll_seconds)
        try:
            job = await read_job(app, job.id)
        except JobNotFound:
            return  # it was deleted
        except StoreError:
            continue  # the stream continues when the store is available again


def _text(job: Job) -> str:
    """A renewed lease is no change."""
    document = job_document(job, show_args=False, show_trace=False)
    data = msgspec.json.encode(msgspec.structs.replace(document, lease=None)).decode()
    return f"event: {'job' if job.report is None else 'end'}\ndata: {data}\n\n"
