"""Batches: many jobs that are counted together, and jobs that follow when all have ended."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from freehold.client import CLIENT, Client, JobHandle, Members
from freehold.errors import Refused
from freehold.model.audit import PYTHON
from freehold.model.flow import (
    Flow,
    FlowKind,
    Moment,
    NewFlow,
    check_callbacks,
    check_flow_name,
    check_member,
)
from freehold.model.job import Job, NewJob
from freehold.model.state import State
from freehold.operations.input_checks import author_of
from freehold.signals import SignalSender
from freehold.store.statements import Verb
from freehold.store.verbs import flow_actions, flows
from freehold.store.verbs.flow_members import flow_members

#: Members that are stored with their batch, whole or not at all; more are added in parts.
WHOLE_LIMIT = 10_000
_PART = 1_000


class FlowHandle:
    """A stored flow, as its producer gets it."""

    def __init__(self, client: Client, flow: int, name: str) -> None:
        self._client = client
        self.id = flow
        self.name = name

    def read(self) -> Flow:
        """The flow as it is now: state and counts, from one row."""
        return self._client.store.run(flow_actions.existing_flow(self.id))

    async def aread(self) -> Flow:
        return await self._client.awaited.run(flow_actions.existing_flow(self.id))

    def cancel(self, reason: str | None = None, *, by: str = CLIENT) -> bool:
        """Cancel all members that have not ended. False: the flow has ended, or was canceled."""
        author = author_of(by, PYTHON, reason)
        return self._client.store.run(flow_actions.cancel_flow(self.id, author))

    async def acancel(self, reason: str | None = None, *, by: str = CLIENT) -> bool:
        author = author_of(by, PYTHON, reason)
        return await self._client.awaited.run(flow_actions.cancel_flow(self.id, author))

    def retry(self, reason: str | None = None, *, by: str = CLIENT) -> int:
        """Run what failed or was canceled again. Returns how many jobs."""
        author = author_of(by, PYTHON, reason)
        return self._client.store.run(flow_actions.retry_flow(self.id, author))

    async def aretry(self, reason: str | None = None, *, by: str = CLIENT) -> int:
        author = author_of(by, PYTHON, reason)
        return await self._client.awaited.run(flow_actions.retry_flow(self.id, author))

    def members(self, *states: State) -> Iterator[Job]:
        """The jobs of the flow in the order of their ids, all or those in these states. Reads page
        by page, so that a million of them need no memory."""
        after: int | None = 0
        while after is not None:
            page = self._client.store.run(flow_members(self.id, after, states=states))
            yield from page.jobs
            after = page.next

    async def amembers(self, *states: State) -> AsyncIterator[Job]:
        after: int | None = 0
        while after is not None:
            page = await self._client.awaited.run(flow_members(self.id, after, states=states))
            for job in page.jobs:
                yield job
            after = page.next

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.name!r}>"


class Batch(FlowHandle):
    """A batch. An open one gets members until it is sealed."""

    def add(self, jobs: Iterable[NewJob]) -> list[JobHandle]:
        """Add members, all or none of each thousand. Refused once the batch is sealed."""
        handles: list[JobHandle] = []
        for part in _parts(_members_of(jobs, "batch.add"), _PART):
            adding = partial(_adding, self.id, within=False)
            handles += self._client.store_members(part, adding)[1]
        return handles

    async def aadd(self, jobs: Iterable[NewJob]) -> list[JobHandle]:
        handles: list[JobHandle] = []
        for part in _parts(_members_of(jobs, "batch.aadd"), _PART):
            adding = partial(_adding, self.id, within=False)
            handles += (await self._client.astore_members(part, adding))[1]
        return handles

    def seal(self) -> None:
        """No member is added any more, but by members that run. Callbacks can come from now on."""
        self._client.store.seal_flow(self.id)

    async def aseal(self) -> None:
        await self._client.awaited.seal_flow(self.id)


def _adding(flow: int, jobs: Sequence[NewJob], *, within: bool) -> Verb[Members]:
    ids = yield from flows.add_members(flow, jobs, within=within)
    if ids is None:
        found = yield from flow_actions.existing_flow(flow)
        how = "canceled" if found.canceled_at else "sealed"
        raise Refused(
            f"batch {flow} ({found.name}) is {how}: nothing was added; open another batch, or add "
            "members from a handler of this one, with ctx.batch.add"
        )
    return None, ids


class BatchMaker(SignalSender):
    """Makes batches through the client of an app."""

    def batch(
        self,
        jobs: Iterable[NewJob],
        *,
        name: str = "batch",
        on_success: NewJob | None = None,
        on_failure: NewJob | None = None,
        on_end: NewJob | None = None,
        connection: Any = None,
    ) -> Batch:
        """Store jobs that are counted together, and jobs that follow them.

        ``on_success`` is stored when all have succeeded, ``on_failure`` when all have ended and not
        all have succeeded, ``on_end`` in both cases; each at most once. Up to 10,000 members are
        stored whole or not at all, more in parts. With ``connection``: in the caller's transaction.
        """
        new = _new_batch(name, on_success, on_failure, on_end)
        making = _making(new, jobs, within=connection is not None)
        client, flow = self._client, 0
        try:
            part, storing = next(making)
            while True:
                found, _ = client.store_members(part, storing, connection)
                flow = flow or found
                part, storing = making.send(flow)
        except StopIteration:
            pass
        except BaseException as error:
            if flow and connection is None:
                Batch(client, flow, name).cancel(f"its producer failed: {error!r}"[:500])
            raise
        return Batch(client, flow, name)

    async def abatch(
        self,
        jobs: Iterable[NewJob],
        *,
        name: str = "batch",
        on_success: NewJob | None = None,
        on_failure: NewJob | None = None,
        on_end: NewJob | None = None,
        connection: Any = None,
    ) -> Batch:
        """The same for asyncio."""
        new = _new_batch(name, on_success, on_failure, on_end)
        making = _making(new, jobs, within=connection is not None)
        client, flow = self._client, 0
        try:
            part, storing = next(making)
            while True:
                found, _ = await client.astore_members(part, storing, connection)
                flow = flow or found
                part, storing = making.send(flow)
        except StopIteration:
            pass
        except BaseException as error:
            if flow and connection is None:
                await Batch(client, flow, name).acancel(f"its producer failed: {error!r}"[:500])
            raise
        return Batch(client, flow, name)

    @contextlib.contextmanager
    def open_batch(
        self,
        name: str = "batch",
        *,
        on_success: NewJob | None = None,
        on_failure: NewJob | None = None,
        on_end: NewJob | None = None,
    ) -> Iterator[Batch]:
        """A batch that gets its members in the block, and is sealed at its end.

        If the block raises, or its process dies, the batch stays open: seal it, or cancel it.
        """
        new = _new_batch(name, on_success, on_failure, on_end, sealed=False)
        flow, _ = self._client.store.create_batch(new, (), within=False)
        batch = Batch(self._client, flow, name)
        yield batch
        batch.seal()

    @contextlib.asynccontextmanager
    async def aopen_batch(
        self,
        name: str = "batch",
        *,
        on_success: NewJob | None = None,
        on_failure: NewJob | None = None,
        on_end: NewJob | None = None,
    ) -> AsyncIterator[Batch]:
        """The same for asyncio."""
        new = _new_batch(name, on_success, on_failure, on_end, sealed=False)
        flow, _ = await self._client.awaited.create_batch(new, (), within=False)
        batch = Batch(self._client, flow, name)
        yield batch
        await batch.aseal()


def _new_batch(
    name: str,
    on_success: NewJob | None,
    on_failure: NewJob | None,
    on_end: NewJob | None,
    *,
    sealed: bool = True,
) -> NewFlow:
    callbacks = check_callbacks(
        {Moment.SUCCESS: on_success, Moment.FAILURE: on_failure, Moment.END: on_end}
    )
    return NewFlow(
        kind=FlowKind.BATCH, name=check_flow_name(name), sealed=sealed, callbacks=callbacks
    )


_Storing = tuple[Sequence[NewJob], Any]


def _making(
    new: NewFlow, jobs: Iterable[NewJob], *, within: bool
) -> Generator[_Storing, int, None]:
    """What is stored in order: the batch with its first members, the others, the seal. Receives the
    id of the batch."""
    left = iter(_members_of(jobs, "batch"))
    first = list(islice(left, WHOLE_LIMIT))
    next_part = list(islice(left, _PART))
    sealed = NewFlow(kind=new.kind, name=new.name, callbacks=new.callbacks, sealed=not next_part)
    flow = yield first, partial(flows.create_batch, sealed, within=within)
    if not next_part:
        return
    while next_part:
        yield next_part, partial(_adding, flow, within=within)
        next_part = list(islice(left, _PART))
    yield (), partial(_sealing, flow)


def _sealing(flow: int, jobs: Sequence[NewJob]) -> Verb[Members]:
    yield from flows.seal_flow(flow)
    return None, []


def _members_of(jobs: Iterable[NewJob], what: str) -> Iterator[NewJob]:
    return (check_member(job, what) for job in jobs)


def _parts(jobs: Iterator[NewJob], size: int) -> Iterator[list[NewJob]]:
    while part := list(islice(jobs, size)):
        yield part
