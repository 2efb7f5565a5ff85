"""A store: every verb as a method, blocking (`Store`) or asyncio (`AsyncStore`).

Both stores pass one suite. Every write of an owner is fenced by id, owner, token, stage and the
database's clock, and its result shows what it did not hit. The docstring of each verb has its
promise. `operator` composes verbs by `yield from`, without a store.
"""

from __future__ import annotations

from freehold.store.statements import AsyncMethods, BlockingMethods, method
from freehold.store.verbs import act as acting
from freehold.store.verbs import amend as amending
from freehold.store.verbs import audit as auditing
from freehold.store.verbs import bulk as bulk_verbs
from freehold.store.verbs import claim as claiming
from freehold.store.verbs import enqueue as enqueueing
from freehold.store.verbs import finish as finishing
from freehold.store.verbs import fire as firing
from freehold.store.verbs import flow_actions, late, stalled_lanes, workflows
from freehold.store.verbs import flow_members as members
from freehold.store.verbs import flows as flow_verbs
from freehold.store.verbs import fold as folding
from freehold.store.verbs import gather as gathering
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
from freehold.store.verbs import signals as signaling
from freehold.store.verbs import steps as step_verbs
from freehold.store.verbs import tenant_directory as directory
from freehold.store.verbs import web_sessions as sessions
from freehold.store.verbs import workers as worker_rows


class Verbs:
    """In the order of a job's life."""

    enqueue = method(enqueueing.enqueue)
    claim = method(claiming.claim)
    mark_running = method(renewing.mark_running)
    renew = method(renewing.renew)
    append_log = method(job_logging.append_log)
    put_steps = method(step_verbs.put_steps)
    put_step_within = method(step_verbs.put_step_within)
    await_signal = method(signaling.await_signal)
    send_signal = method(signaling.send_signal)
    deliver_signals = method(signaling.deliver_signals)
    stop_requests = method(renewing.stop_requests)
    finish = method(finishing.finish)
    finish_within = method(finishing.finish_within)
    give_back = method(finishing.give_back)
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
    cancel_late = method(late.cancel_late)
    create_batch = method(flow_verbs.create_batch)
    create_workflow = method(workflows.create_workflow)
    add_members = method(flow_verbs.add_members)
    add_nodes = method(workflows.add_nodes)
    flow_nodes = method(workflows.flow_nodes)
    seal_flow = method(flow_verbs.seal_flow)
    gather = method(gathering.gather)
    finish_gather = method(gathering.finish_gather)
    fold_flows = method(folding.fold_flows)
    advance_flows = method(acting.advance_flows)
    read_flows = method(flow_verbs.read_flows)
    flows = method(flow_verbs.flows)
    resting_flows = method(flow_verbs.resting_flows)
    standing_flows = method(flow_verbs.standing_flows)
    flow_members = method(members.flow_members)
    read_flow = method(flow_actions.existing_flow)
    all_members = method(flow_actions.all_members)
    add_from_member = method(flow_actions.add_from_member)
    add_node = method(flow_actions.add_node)
    cancel_flow = method(flow_actions.cancel_flow)
    retry_flow = method(flow_actions.retry_flow)
    operate = method(operating.operate)
    delete = method(operating.delete)
    amend = method(amending.amend)
    clone = method(amending.clone)
    read = method(querying.read_jobs)
    read_ends = method(querying.read_ends)
    events = method(querying.events)
    events_after = method(querying.events_after)
    newest_event = method(querying.newest_event)
    read_log = method(job_logging.read_log)
    read_steps = method(step_verbs.read_steps)
    page = method(querying.page)
    depth = method(querying.depth)
    counts = method(querying.counts)
    has_live_jobs = method(querying.has_live_jobs)
    queues = method(querying.queues)
    queue = method(querying.queue)
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
    lane = method(querying.lane)
    lane_jobs = method(querying.lane_jobs)
    attempts = method(querying.attempts)
    blocked_lanes = method(querying.blocked_lanes)
    overdue_leases = method(querying.overdue_leases)
    recent_failures = method(querying.recent_failures)
    retention_is_due = method(maintaining.retention_is_due)
    set_retention = method(retaining.set_retention)
    retention_rules = method(retaining.retention_rules)
    apply_retention = method(maintaining.apply_retention)
    start_bulk = method(bulk_verbs.start)
    carry_out_bulk_step = method(bulk_verbs.carry_out_step)
    preview_jobs = method(bulk_verbs.preview_jobs)
    bulk_operation = method(bulk_verbs.operation)
    bulk_operations = method(bulk_verbs.operations)
    set_bulk_state = method(bulk_verbs.set_state)
    audit = method(auditing.audit)
    apply_audit_retention = method(auditing.apply_audit_retention)
    heartbeat = method(worker_rows.heartbeat)
    remove_worker = method(worker_rows.remove_worker)
    record_scaling = method(worker_rows.record_scaling)
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
    open_web_session = method(sessions.open_web_session)
    use_web_session = method(sessions.use_web_session)
    close_web_sessions = method(sessions.close_web_sessions)
    web_sessions = method(sessions.web_sessions)
    now = method(querying.now)


class Store(Verbs, BlockingMethods):
    """For callers that block."""


class AsyncStore(Verbs, AsyncMethods):
    """The same for asyncio."""
