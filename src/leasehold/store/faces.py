"""The verbs with two faces: for callers that block, and for those that await.

A third face is the generator itself: `operate` composes verbs by `yield from`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from leasehold.store import (
    claiming,
    directory,
    enqueueing,
    fencing,
    finishing,
    limiting,
    noting,
    operating,
    pausing,
    reading,
    registering,
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
    chores = _blocking(upkeep.chores)
    unpark = _blocking(upkeep.unpark)
    relieve = _blocking(limiting.relieve)
    wake_lanes = _blocking(pausing.wake_lanes)
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
    pause_queue = _blocking(pausing.pause_queue)
    resume_queue = _blocking(pausing.resume_queue)
    set_queue_limit = _blocking(limiting.set_queue_limit)
    set_weight = _blocking(limiting.set_weight)
    set_key_limit = _blocking(limiting.set_key_limit)
    queue_limits = _blocking(limiting.queue_limits)
    key_limits = _blocking(limiting.key_limits)
    key_use = _blocking(limiting.key_use)
    doors = _blocking(limiting.doors)
    pause_lane = _blocking(pausing.pause_lane)
    resume_lane = _blocking(pausing.resume_lane)
    lanes = _blocking(reading.lanes)
    retain = _blocking(upkeep.retain)
    beat = _blocking(registering.beat)
    leave = _blocking(registering.leave)
    workers = _blocking(registering.workers)
    forget_workers = _blocking(registering.forget_workers)
    tenants = _blocking(directory.tenants)
    tenant = _blocking(directory.tenant)
    add_tenant = _blocking(directory.add_tenant)
    remove_tenant = _blocking(directory.remove_tenant)
    set_tenant_state = _blocking(directory.set_tenant_state)
    set_tenant_share = _blocking(directory.set_tenant_share)
    begin_move = _blocking(directory.begin_move)
    take_back_move = _blocking(directory.take_back_move)
    end_move = _blocking(directory.end_move)
    forget_move = _blocking(directory.forget_move)
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
    chores = _awaited(upkeep.chores)
    unpark = _awaited(upkeep.unpark)
    relieve = _awaited(limiting.relieve)
    wake_lanes = _awaited(pausing.wake_lanes)
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
    pause_queue = _awaited(pausing.pause_queue)
    resume_queue = _awaited(pausing.resume_queue)
    set_queue_limit = _awaited(limiting.set_queue_limit)
    set_weight = _awaited(limiting.set_weight)
    set_key_limit = _awaited(limiting.set_key_limit)
    queue_limits = _awaited(limiting.queue_limits)
    key_limits = _awaited(limiting.key_limits)
    key_use = _awaited(limiting.key_use)
    doors = _awaited(limiting.doors)
    pause_lane = _awaited(pausing.pause_lane)
    resume_lane = _awaited(pausing.resume_lane)
    lanes = _awaited(reading.lanes)
    retain = _awaited(upkeep.retain)
    beat = _awaited(registering.beat)
    leave = _awaited(registering.leave)
    workers = _awaited(registering.workers)
    forget_workers = _awaited(registering.forget_workers)
    tenants = _awaited(directory.tenants)
    tenant = _awaited(directory.tenant)
    add_tenant = _awaited(directory.add_tenant)
    remove_tenant = _awaited(directory.remove_tenant)
    set_tenant_state = _awaited(directory.set_tenant_state)
    set_tenant_share = _awaited(directory.set_tenant_share)
    begin_move = _awaited(directory.begin_move)
    take_back_move = _awaited(directory.take_back_move)
    end_move = _awaited(directory.end_move)
    forget_move = _awaited(directory.forget_move)
    now = _awaited(reading.now)


def _keeps_the_contract(store: AwaitedStore) -> Store:
    """For the type checker: the awaited face is a Store."""
    return store
