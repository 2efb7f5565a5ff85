"""The verbs with two faces: for callers that block, and for those that await.

A third face is the generator itself: `operate` composes verbs by `yield from`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from freehold.store.statements import AsyncSession, Session, Verb, arun, run
from freehold.store.types import StoreContract
from freehold.store.verbs import claim as claiming
from freehold.store.verbs import enqueue as enqueueing
from freehold.store.verbs import finish as finishing
from freehold.store.verbs import finish_within as fencing
from freehold.store.verbs import job_log as noting
from freehold.store.verbs import lanes as freeing
from freehold.store.verbs import limits as limiting
from freehold.store.verbs import maintenance as upkeep
from freehold.store.verbs import operator as operating
from freehold.store.verbs import pause as pausing
from freehold.store.verbs import queries as reading
from freehold.store.verbs import tenant_directory as directory
from freehold.store.verbs import workers as registering

P = ParamSpec("P")
T = TypeVar("T")


def blocking(verb: Callable[P, Verb[T]]) -> Callable[Concatenate[Any, P], T]:
    """A verb as a plain method of whatever has a `session`."""

    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return run(verb(*args, **kwargs), self.session)

    call.__name__, call.__doc__ = verb.__name__, verb.__doc__
    return call


def awaited(
    verb: Callable[P, Verb[T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The same as a coroutine."""

    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await arun(verb(*args, **kwargs), self.session)

    call.__name__, call.__doc__ = verb.__name__, verb.__doc__
    return call


class Store:
    """Every verb as a plain method."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, steps: Verb[T]) -> T:
        return run(steps, self.session)

    enqueue = blocking(enqueueing.enqueue)
    claim = blocking(claiming.claim)
    start = blocking(claiming.start)
    renew = blocking(claiming.renew)
    note = blocking(noting.append_log)
    requests = blocking(claiming.requests)
    finish = blocking(finishing.finish)
    finish_within = blocking(fencing.finish_within)
    release = blocking(finishing.release)
    recover = blocking(finishing.recover)
    make_ready = blocking(upkeep.make_ready)
    chores = blocking(upkeep.sweep_check)
    unpark = blocking(upkeep.unpark)
    relieve = blocking(limiting.admit_limited)
    wake_lanes = blocking(pausing.wake_lanes)
    free_lanes = blocking(freeing.promote_stalled_lanes)
    operate = blocking(operating.operate)
    delete = blocking(operating.delete)
    read = blocking(reading.read_jobs)
    events = blocking(reading.events)
    events_after = blocking(reading.events_after)
    newest_event = blocking(reading.newest_event)
    notes = blocking(noting.read_log)
    page = blocking(reading.page)
    depth = blocking(reading.depth)
    counts = blocking(reading.counts)
    queues = blocking(reading.queues)
    pause_queue = blocking(pausing.pause_queue)
    resume_queue = blocking(pausing.resume_queue)
    set_queue_limit = blocking(limiting.set_queue_limit)
    set_weight = blocking(limiting.set_weight)
    set_key_limit = blocking(limiting.set_key_limit)
    queue_limits = blocking(limiting.queue_limits)
    key_limits = blocking(limiting.key_limits)
    shared_use = blocking(limiting.shared_use)
    key_use = blocking(limiting.key_use)
    doors = blocking(limiting.queue_rules)
    pause_lane = blocking(pausing.pause_lane)
    resume_lane = blocking(pausing.resume_lane)
    lanes = blocking(reading.lanes)
    retain = blocking(upkeep.apply_retention)
    beat = blocking(registering.heartbeat)
    leave = blocking(registering.remove_worker)
    workers = blocking(registering.workers)
    forget_workers = blocking(registering.forget_workers)
    tenants = blocking(directory.tenants)
    tenant = blocking(directory.tenant)
    add_tenant = blocking(directory.add_tenant)
    remove_tenant = blocking(directory.remove_tenant)
    set_tenant_state = blocking(directory.set_tenant_state)
    set_tenant_share = blocking(directory.set_tenant_share)
    begin_move = blocking(directory.begin_move)
    take_back_move = blocking(directory.take_back_move)
    end_move = blocking(directory.end_move)
    forget_move = blocking(directory.forget_move)
    now = blocking(reading.now)


class AsyncStore:
    """Every verb as a coroutine: what `contract.Store` promises."""

    def __init__(self, session: AsyncSession) -> None:
        self.session = session

    async def run(self, steps: Verb[T]) -> T:
        return await arun(steps, self.session)

    enqueue = awaited(enqueueing.enqueue)
    claim = awaited(claiming.claim)
    start = awaited(claiming.start)
    renew = awaited(claiming.renew)
    note = awaited(noting.append_log)
    requests = awaited(claiming.requests)
    finish = awaited(finishing.finish)
    finish_within = awaited(fencing.finish_within)
    release = awaited(finishing.release)
    recover = awaited(finishing.recover)
    make_ready = awaited(upkeep.make_ready)
    chores = awaited(upkeep.sweep_check)
    unpark = awaited(upkeep.unpark)
    relieve = awaited(limiting.admit_limited)
    wake_lanes = awaited(pausing.wake_lanes)
    free_lanes = awaited(freeing.promote_stalled_lanes)
    operate = awaited(operating.operate)
    delete = awaited(operating.delete)
    read = awaited(reading.read_jobs)
    events = awaited(reading.events)
    events_after = awaited(reading.events_after)
    newest_event = awaited(reading.newest_event)
    notes = awaited(noting.read_log)
    page = awaited(reading.page)
    depth = awaited(reading.depth)
    counts = awaited(reading.counts)
    queues = awaited(reading.queues)
    pause_queue = awaited(pausing.pause_queue)
    resume_queue = awaited(pausing.resume_queue)
    set_queue_limit = awaited(limiting.set_queue_limit)
    set_weight = awaited(limiting.set_weight)
    set_key_limit = awaited(limiting.set_key_limit)
    queue_limits = awaited(limiting.queue_limits)
    key_limits = awaited(limiting.key_limits)
    shared_use = awaited(limiting.shared_use)
    key_use = awaited(limiting.key_use)
    doors = awaited(limiting.queue_rules)
    pause_lane = awaited(pausing.pause_lane)
    resume_lane = awaited(pausing.resume_lane)
    lanes = awaited(reading.lanes)
    retain = awaited(upkeep.apply_retention)
    beat = awaited(registering.heartbeat)
    leave = awaited(registering.remove_worker)
    workers = awaited(registering.workers)
    forget_workers = awaited(registering.forget_workers)
    tenants = awaited(directory.tenants)
    tenant = awaited(directory.tenant)
    add_tenant = awaited(directory.add_tenant)
    remove_tenant = awaited(directory.remove_tenant)
    set_tenant_state = awaited(directory.set_tenant_state)
    set_tenant_share = awaited(directory.set_tenant_share)
    begin_move = awaited(directory.begin_move)
    take_back_move = awaited(directory.take_back_move)
    end_move = awaited(directory.end_move)
    forget_move = awaited(directory.forget_move)
    now = awaited(reading.now)


def _keeps_the_contract(store: AsyncStore) -> StoreContract:
    """For the type checker: the awaited face is a Store."""
    return store
