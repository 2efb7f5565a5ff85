"""A store: every verb as a method, blocking (`Store`) or asyncio (`AsyncStore`).

Both stores pass one suite. Every verb works on sets. Every write of an owner is fenced by id,
owner, token, stage and the database's clock, and returns what it did not hit. The docstring of
each verb has its promise. `operator` composes verbs by `yield from`, without a store.
"""

from __future__ import annotations

from freehold.store.statements import AsyncMethods, BlockingMethods, method
from freehold.store.verbs import audit as auditing
from freehold.store.verbs import bulk as bulk_verbs
from freehold.store.verbs import claim as claiming
from freehold.store.verbs import enqueue as enqueueing
from freehold.store.verbs import finish as finishing
from freehold.store.verbs import fire as firing
from freehold.store.verbs import job_log as job_logging
from freehold.store.verbs import limits as limiting
from freehold.store.verbs import maintenance as maintaining
from freehold.store.verbs import operator as operating
from freehold.store.verbs import pause as pausing
from freehold.store.verbs import queries as querying
from freehold.store.verbs import recover as recovering
from freehold.store.verbs import renew as renewing
from freehold.store.verbs import retention as retaining
from freehold.store.verbs import schedules as scheduling
from freehold.store.verbs import set_aside as setting_aside
from freehold.store.verbs import stalled_lanes
from freehold.store.verbs import tenant_directory as directory
from freehold.store.verbs import workers as worker_rows


class Verbs:
    """In the order of a job's life."""

    enqueue = method(enqueueing.enqueue)
    claim = method(claiming.claim)
    mark_running = method(renewing.mark_running)
    renew = method(renewing.renew)
    append_log = method(job_logging.append_log)
    stop_requests = method(renewing.stop_requests)
    finish = method(finishing.finish)
    finish_within = method(finishing.finish_within)
    release = method(finishing.release)
    recover = method(recovering.recover)
    expire_leases = method(recovering.expire_leases)
    restart_leases = method(recovering.restart_leases)
    make_ready = method(maintaining.make_ready)
    set_aside_ready = method(setting_aside.set_aside_ready)
    set_aside_swept = method(setting_aside.set_aside_swept)
    sweep_check = method(maintaining.sweep_check)
    unpark = method(maintaining.unpark)
    misfits = method(maintaining.misfits)
    unpark_misfits = method(maintaining.unpark_misfits)
    admit_limited = method(limiting.admit_limited)
    wake_lanes = method(pausing.wake_lanes)
    promote_stalled_lanes = method(stalled_lanes.promote_stalled_lanes)
    schedules = method(scheduling.schedules)
    read_schedule = method(scheduling.read_schedule)
    put_schedule = method(scheduling.put_schedule)
    change_schedule = method(scheduling.change_schedule)
    reset_schedule = method(scheduling.reset_schedule)
    declare_schedules = method(scheduling.declare_schedules)
    drop_schedule = method(scheduling.drop_schedule)
    fire_schedules = method(firing.fire_schedules)
    operate = method(operating.operate)
    delete = method(operating.delete)
    read = method(querying.read_jobs)
    read_ends = method(querying.read_ends)
    events = method(querying.events)
    events_after = method(querying.events_after)
    newest_event = method(querying.newest_event)
    read_log = method(job_logging.read_log)
    page = method(querying.page)
    depth = method(querying.depth)
    counts = method(querying.counts)
    has_live_jobs = method(querying.has_live_jobs)
    queues = method(querying.queues)
    pause_of_all = method(querying.pause_of_all)
    ready_queues = method(claiming.ready_queues)
    pause_queue = method(pausing.pause_queue)
    resume_queue = method(pausing.resume_queue)
    set_queue_limit = method(limiting.set_queue_limit)
    set_weight = method(limiting.set_weight)
    set_key_limit = method(limiting.set_key_limit)
    declare_limits = method(limiting.declare_limits)
    queue_limits = method(limiting.queue_limits)
    key_limits = method(limiting.key_limits)
    shared_use = method(limiting.shared_use)
    key_use = method(limiting.key_use)
    queue_rules = method(limiting.queue_rules)
    pause_lane = method(pausing.pause_lane)
    resume_lane = method(pausing.resume_lane)
    lanes = method(querying.lanes)
    retention_is_due = method(maintaining.retention_is_due)
    set_retention = method(retaining.set_retention)
    retention_rules = method(retaining.retention_rules)
    apply_retention = method(maintaining.apply_retention)
    start_bulk = method(bulk_verbs.start)
    carry_out_bulk_step = method(bulk_verbs.carry_out_step)
    bulk_operation = method(bulk_verbs.operation)
    set_bulk_state = method(bulk_verbs.set_state)
    audit = method(auditing.audit)
    apply_audit_retention = method(auditing.apply_audit_retention)
    heartbeat = method(worker_rows.heartbeat)
    remove_worker = method(worker_rows.remove_worker)
    workers = method(worker_rows.workers)
    remove_silent_workers = method(worker_rows.remove_silent_workers)
    tenants = method(directory.tenants)
    tenant = method(directory.tenant)
    add_tenant = method(directory.add_tenant)
    remove_tenant = method(directory.remove_tenant)
    set_tenant_state = method(directory.set_tenant_state)
    set_tenant_share = method(directory.set_tenant_share)
    begin_move = method(directory.begin_move)
    cancel_move = method(directory.cancel_move)
    switch_move = method(directory.switch_move)
    end_move = method(directory.end_move)
    clear_move = method(directory.clear_move)
    now = method(querying.now)


class Store(Verbs, BlockingMethods):
    """For callers that block."""


class AsyncStore(Verbs, AsyncMethods):
    """The same for asyncio."""
