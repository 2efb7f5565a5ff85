"""A store: every verb as a method, blocking (`Store`) or asyncio (`AsyncStore`).

`operator` composes verbs by `yield from`, without either. `contract` has the promises.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from freehold.store.contract import StoreContract
from freehold.store.statements import AsyncSession, Session, Verb, arun, run
from freehold.store.verbs import claim as claiming
from freehold.store.verbs import enqueue as enqueueing
from freehold.store.verbs import finish as finishing
from freehold.store.verbs import job_log as job_logging
from freehold.store.verbs import lanes as lane_verbs
from freehold.store.verbs import limits as limiting
from freehold.store.verbs import maintenance as maintaining
from freehold.store.verbs import operator as operating
from freehold.store.verbs import pause as pausing
from freehold.store.verbs import queries as querying
from freehold.store.verbs import recover as recovering
from freehold.store.verbs import renew as renewing
from freehold.store.verbs import tenant_directory as directory
from freehold.store.verbs import workers as worker_rows

P = ParamSpec("P")
T = TypeVar("T")


def blocking(verb: Callable[P, Verb[T]]) -> Callable[Concatenate[Any, P], T]:
    """A verb as a blocking method of a class with a `session`."""

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
    mark_running = blocking(renewing.mark_running)
    renew = blocking(renewing.renew)
    append_log = blocking(job_logging.append_log)
    stop_requests = blocking(renewing.stop_requests)
    finish = blocking(finishing.finish)
    finish_within = blocking(finishing.finish_within)
    release = blocking(finishing.release)
    recover = blocking(recovering.recover)
    make_ready = blocking(maintaining.make_ready)
    sweep_check = blocking(maintaining.sweep_check)
    unpark = blocking(maintaining.unpark)
    admit_limited = blocking(limiting.admit_limited)
    wake_lanes = blocking(pausing.wake_lanes)
    promote_stalled_lanes = blocking(lane_verbs.promote_stalled_lanes)
    operate = blocking(operating.operate)
    delete = blocking(operating.delete)
    read = blocking(querying.read_jobs)
    events = blocking(querying.events)
    events_after = blocking(querying.events_after)
    newest_event = blocking(querying.newest_event)
    read_log = blocking(job_logging.read_log)
    page = blocking(querying.page)
    depth = blocking(querying.depth)
    counts = blocking(querying.counts)
    has_live_jobs = blocking(querying.has_live_jobs)
    queues = blocking(querying.queues)
    pause_queue = blocking(pausing.pause_queue)
    resume_queue = blocking(pausing.resume_queue)
    set_queue_limit = blocking(limiting.set_queue_limit)
    set_weight = blocking(limiting.set_weight)
    set_key_limit = blocking(limiting.set_key_limit)
    queue_limits = blocking(limiting.queue_limits)
    key_limits = blocking(limiting.key_limits)
    shared_use = blocking(limiting.shared_use)
    key_use = blocking(limiting.key_use)
    queue_rules = blocking(limiting.queue_rules)
    pause_lane = blocking(pausing.pause_lane)
    resume_lane = blocking(pausing.resume_lane)
    lanes = blocking(querying.lanes)
    apply_retention = blocking(maintaining.apply_retention)
    heartbeat = blocking(worker_rows.heartbeat)
    remove_worker = blocking(worker_rows.remove_worker)
    workers = blocking(worker_rows.workers)
    remove_silent_workers = blocking(worker_rows.remove_silent_workers)
    tenants = blocking(directory.tenants)
    tenant = blocking(directory.tenant)
    add_tenant = blocking(directory.add_tenant)
    remove_tenant = blocking(directory.remove_tenant)
    set_tenant_state = blocking(directory.set_tenant_state)
    set_tenant_share = blocking(directory.set_tenant_share)
    begin_move = blocking(directory.begin_move)
    cancel_move = blocking(directory.cancel_move)
    switch_move = blocking(directory.switch_move)
    end_move = blocking(directory.end_move)
    clear_move = blocking(directory.clear_move)
    now = blocking(querying.now)


class AsyncStore:
    """Every verb as a coroutine: what `StoreContract` promises."""

    def __init__(self, session: AsyncSession) -> None:
        self.session = session

    async def run(self, steps: Verb[T]) -> T:
        return await arun(steps, self.session)

    enqueue = awaited(enqueueing.enqueue)
    claim = awaited(claiming.claim)
    mark_running = awaited(renewing.mark_running)
    renew = awaited(renewing.renew)
    append_log = awaited(job_logging.append_log)
    stop_requests = awaited(renewing.stop_requests)
    finish = awaited(finishing.finish)
    finish_within = awaited(finishing.finish_within)
    release = awaited(finishing.release)
    recover = awaited(recovering.recover)
    make_ready = awaited(maintaining.make_ready)
    sweep_check = awaited(maintaining.sweep_check)
    unpark = awaited(maintaining.unpark)
    admit_limited = awaited(limiting.admit_limited)
    wake_lanes = awaited(pausing.wake_lanes)
    promote_stalled_lanes = awaited(lane_verbs.promote_stalled_lanes)
    operate = awaited(operating.operate)
    delete = awaited(operating.delete)
    read = awaited(querying.read_jobs)
    events = awaited(querying.events)
    events_after = awaited(querying.events_after)
    newest_event = awaited(querying.newest_event)
    read_log = awaited(job_logging.read_log)
    page = awaited(querying.page)
    depth = awaited(querying.depth)
    counts = awaited(querying.counts)
    has_live_jobs = awaited(querying.has_live_jobs)
    queues = awaited(querying.queues)
    pause_queue = awaited(pausing.pause_queue)
    resume_queue = awaited(pausing.resume_queue)
    set_queue_limit = awaited(limiting.set_queue_limit)
    set_weight = awaited(limiting.set_weight)
    set_key_limit = awaited(limiting.set_key_limit)
    queue_limits = awaited(limiting.queue_limits)
    key_limits = awaited(limiting.key_limits)
    shared_use = awaited(limiting.shared_use)
    key_use = awaited(limiting.key_use)
    queue_rules = awaited(limiting.queue_rules)
    pause_lane = awaited(pausing.pause_lane)
    resume_lane = awaited(pausing.resume_lane)
    lanes = awaited(querying.lanes)
    apply_retention = awaited(maintaining.apply_retention)
    heartbeat = awaited(worker_rows.heartbeat)
    remove_worker = awaited(worker_rows.remove_worker)
    workers = awaited(worker_rows.workers)
    remove_silent_workers = awaited(worker_rows.remove_silent_workers)
    tenants = awaited(directory.tenants)
    tenant = awaited(directory.tenant)
    add_tenant = awaited(directory.add_tenant)
    remove_tenant = awaited(directory.remove_tenant)
    set_tenant_state = awaited(directory.set_tenant_state)
    set_tenant_share = awaited(directory.set_tenant_share)
    begin_move = awaited(directory.begin_move)
    cancel_move = awaited(directory.cancel_move)
    switch_move = awaited(directory.switch_move)
    end_move = awaited(directory.end_move)
    clear_move = awaited(directory.clear_move)
    now = awaited(querying.now)


def _keeps_the_contract(store: AsyncStore) -> StoreContract:
    """For the type checker: an AsyncStore keeps the contract."""
    return store
