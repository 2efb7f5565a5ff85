"""Notices what has changed in a store, for all open pages together.

While a page is open, one task reads a snapshot every second, or less often if that takes long
(`refreshing`): only of the topics that open pages have, however many pages that are. It wakes the
pages of each topic that changed. A page then loads itself again, so that its rights are checked as
for every request, and no data is in the stream.

A page is loaded again after the first look at its topics, too: what changed after it was made and
before that look would be in no difference between two looks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from freehold.app import Freehold
from freehold.clock import monotonic
from freehold.dashboard.graph import NODES_DRAWN
from freehold.dashboard.refreshing import Refreshing
from freehold.errors import FlowNotFound, FreeholdError
from freehold.model.flow import FlowKind
from freehold.operator import AsyncOperator
from freehold.store.types import JobFilter
from freehold.telemetry import log

JOB = "job-"
FLOW = "flow-"
_BOUND = 1_000
#: A message that the store did not respond.
AWAY = "away"
#: A message that the rest of the watcher has changed.
RESTING = "resting"
#: A shorter rest is not shown: with it a change is still seen within two seconds.
_SHOWN_REST_SECONDS = 1.5


class Listener:
    """One open page. ``rest_seconds``: until the watcher looks again, if that is long."""

    def __init__(self, topics: frozenset[str]) -> None:
        self.topics = topics
        self.rest_seconds = 0.0
        self.is_new = True
        self._changed: set[str] = set()
        self._event = asyncio.Event()

    def add(self, topics: set[str]) -> None:
        self._changed |= topics
        self._event.set()

    def rest(self, seconds: float) -> None:
        """Each look that is followed by a long rest is a message, and the first one that is not."""
        shown = seconds if seconds > _SHOWN_REST_SECONDS else 0.0
        if shown or self.rest_seconds:
            self.rest_seconds = shown
            self.add({RESTING})

    async def changes(self, seconds: float) -> set[str]:
        """Topics that changed since the last call; none after so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return set()
        found, self._changed = self._changed, set()
        self._event.clear()
        return found


class Watcher:
    """Of one app: its task runs while there are listeners."""

    def __init__(self, app: Freehold, poll_seconds: float = 1.0) -> None:
        self._app = app
        self._poll_seconds = poll_seconds
        self._listeners: set[Listener] = set()
        self._seen: dict[str, Any] = {}
        self.refreshing = Refreshing()
        self._joined = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def listening(self, topics: frozenset[str]) -> Iterator[Listener]:
        listener = Listener(topics)
        self._listeners.add(listener)
        self._joined.set()
        if self._task is None or self._task.done():
            self._joined = asyncio.Event()  # of the running event loop
            self._task = asyncio.create_task(self._run(), name="dashboard watcher")
        try:
            yield listener
        finally:
            self._listeners.discard(listener)
            if not self._listeners and self._task is not None:
                self._task.cancel()
                self._task = None
                self._seen = {}

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    def operator(self) -> AsyncOperator:
        """For reads of open pages, which are measured."""
        return self._app.aoperator.measured(self.refreshing)

    async def _run(self) -> None:
        next_look = monotonic()
        while True:
            self._joined.clear()
            is_due = monotonic() >= next_look
            wanted = {topic for listener in self._listeners for topic in listener.topics}
            present = list(self._listeners)
            changed = await self._changed(wanted if is_due else wanted - self._seen.keys())
            first = [each for each in present if each.is_new and AWAY not in changed]
            self._send(changed, first)
            if is_due:
                next_look = monotonic() + max(self._poll_seconds, self.refreshing.rest_seconds)
                self._seen = {topic: self._seen[topic] for topic in wanted}
            for listener in list(self._listeners) if is_due else first:
                listener.rest(next_look - monotonic())
            with suppress(TimeoutError):
                async with asyncio.timeout(next_look - monotonic()):
                    await self._joined.wait()

    def _send(self, changed: set[str], first: list[Listener]) -> None:
        """``first``: pages whose topics were all looked at, now or before."""
        if changed or first:
            self.refreshing.forget()
        for listener in self._listeners:
            if mine := changed & (listener.topics | {AWAY}):
                listener.add(mine)
        for listener in first:
            listener.is_new = False
            listener.add(set(listener.topics))

    async def _changed(self, topics: set[str]) -> set[str]:
        try:
            changed = await self._look(topics)
        except Exception as error:
            if not isinstance(error, FreeholdError) and AWAY not in self._seen.values():
                log.exception("the dashboard could not read what has changed")
            changed = {AWAY}
            self._seen = dict.fromkeys(self._seen.keys() | topics, AWAY)  # its return is a change
        return changed

    async def _look(self, wanted: set[str]) -> set[str]:
        """A topic that is read for the first time has not changed."""
        changed = set()
        for topic in wanted:
            value = await self.read(topic)
            if topic in self._seen and self._seen[topic] != value:
                changed.add(topic)
            self._seen[topic] = value
        return changed

    async def read(self, topic: str) -> Any:
        """A value that differs if the topic has changed."""
        operator = self.operator()
        if topic.startswith(JOB):
            return await _job(self._app, operator, int(topic.removeprefix(JOB)))
        if topic.startswith(FLOW):
            return await _flow(operator, int(topic.removeprefix(FLOW)))
        return await TOPICS[topic](operator)


async def _job(app: Freehold, operator: AsyncOperator, job_id: int) -> Any:
    job = (await operator.jobs_by_id([job_id])).get(job_id)
    if job is None or job.lease is None:
        return job
    return job, await app._client.awaited.read_log(job_id, 1)


async def _flow(operator: AsyncOperator, flow_id: int) -> Any:
    """Of a large workflow only the counts: its nodes are too many to be read every second."""
    try:
        flow = await operator.flow(flow_id)
        if flow.kind is FlowKind.WORKFLOW and flow.counts.total > NODES_DRAWN:
            return flow
        return await operator.flow_detail(flow_id)
    except FlowNotFound:
        return None


async def _flows(kind: FlowKind, operator: AsyncOperator) -> Any:
    return await operator.flow_page(kind=kind)


async def _jobs(operator: AsyncOperator) -> Any:
    newest = await operator.jobs(JobFilter(limit=1), reads=1)
    ids = [job.id for job in newest.jobs]
    return ids, await operator.newest_event(), await operator.counts(_BOUND)


async def _queues(operator: AsyncOperator) -> Any:
    return await operator.queue_list(), await operator.pause_of_all()


async def _workers(operator: AsyncOperator) -> Any:
    """Without the times of heartbeats, which change all the time."""
    found = await operator.workers()
    return [(each.owner, each.state, each.running, each.waiting, each.finished) for each in found]


async def _lanes(operator: AsyncOperator) -> Any:
    return await operator.lanes()


async def _events(operator: AsyncOperator) -> Any:
    return await operator.newest_event()


async def _bulk(operator: AsyncOperator) -> Any:
    return await operator.bulk.list()


async def _schedules(operator: AsyncOperator) -> Any:
    return await operator.schedules()


#: What a page can be about.
TOPICS: dict[str, Callable[[AsyncOperator], Awaitable[Any]]] = {
    "jobs": _jobs,
    "queues": _queues,
    "workers": _workers,
    "lanes": _lanes,
    "events": _events,
    "bulk": _bulk,
    "schedules": _schedules,
    "batches": partial(_flows, FlowKind.BATCH),
    "gathers": partial(_flows, FlowKind.GATHER),
    "workflows": partial(_flows, FlowKind.WORKFLOW),
}
