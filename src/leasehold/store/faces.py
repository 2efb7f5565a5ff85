"""The verbs with two faces: for callers that block, and for those that await.

A third face is the generator itself: `operate` composes verbs by `yield from`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from leasehold.store import (
    claiming,
    enqueueing,
    fencing,
    finishing,
    noting,
    operating,
    reading,
    upkeep,
)
from leasehold.store.contract import Store
from leasehold.store.steps import AsyncSession, Session, Steps, arun, run

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(verb: Callable[P, Steps[T]]) -> Callable[Concatenate[BlockingStore, P], T]:
    def call(self: BlockingStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run(verb(*args, **kwargs), self.session)

    call.__name__ = verb.__name__
    return call


def _awaited(
    verb: Callable[P, Steps[T]],
) -> Callable[Concatenate[AwaitedStore, P], Coroutine[Any, Any, T]]:
    async def call(self: AwaitedStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await arun(verb(*args, **kwargs), self.session)

    call.__name__ = verb.__name__
    return call


class BlockingStore:
    """Every verb as a plain method."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, steps: Steps[T]) -> T:
        return run(steps, self.session)

    enqueue = _blocking(enqueueing.enqueue)
    claim = _blocking(claiming.claim)
    start = _blocking(claiming.start)
    renew = _blocking(claiming.renew)
    note = _blocking(noting.note)
    requests = _blocking(claiming.requests)
    finish = _blocking(finishing.finish)
    finish_within = _blocking(fencing.finish_within)
    release = _blocking(finishing.release)
    recover = _blocking(finishing.recover)
    make_ready = _blocking(upkeep.make_ready)
    next_due_seconds = _blocking(upkeep.next_due_seconds)
    unpark = _blocking(upkeep.unpark)
    operate = _blocking(operating.operate)
    delete = _blocking(operating.delete)
    read = _blocking(reading.read_jobs)
    events = _blocking(reading.events)
    events_after = _blocking(reading.events_after)
    newest_event = _blocking(reading.newest_event)
    notes = _blocking(noting.notes)
    page = _blocking(reading.page)
    depth = _blocking(reading.depth)
    counts = _blocking(reading.counts)
    queues = _blocking(reading.queues)
    pause_queue = _blocking(upkeep.pause_queue)
    resume_queue = _blocking(upkeep.resume_queue)
    retain = _blocking(upkeep.retain)
    now = _blocking(reading.now)


class AwaitedStore:
    """Every verb as a coroutine: what `contract.Store` promises."""

    def __init__(self, session: AsyncSession) -> None:
        self.session = session

    async def run(self, steps: Steps[T]) -> T:
        return await arun(steps, self.session)

    enqueue = _awaited(enqueueing.enqueue)
    claim = _awaited(claiming.claim)
    start = _awaited(claiming.start)
    renew = _awaited(claiming.renew)
    note = _awaited(noting.note)
    requests = _awaited(claiming.requests)
    finish = _awaited(finishing.finish)
    finish_within = _awaited(fencing.finish_within)
    release = _awaited(finishing.release)
    recover = _awaited(finishing.recover)
    make_ready = _awaited(upkeep.make_ready)
    next_due_seconds = _awaited(upkeep.next_due_seconds)
    unpark = _awaited(upkeep.unpark)
    operate = _awaited(operating.operate)
    delete = _awaited(operating.delete)
    read = _awaited(reading.read_jobs)
    events = _awaited(reading.events)
    events_after = _awaited(reading.events_after)
    newest_event = _awaited(reading.newest_event)
    notes = _awaited(noting.notes)
    page = _awaited(reading.page)
    depth = _awaited(reading.depth)
    counts = _awaited(reading.counts)
    queues = _awaited(reading.queues)
    pause_queue = _awaited(upkeep.pause_queue)
    resume_queue = _awaited(upkeep.resume_queue)
    retain = _awaited(upkeep.retain)
    now = _awaited(reading.now)


def _keeps_the_contract(store: AwaitedStore) -> Store:
    """For the type checker: the awaited face is a Store."""
    return store
