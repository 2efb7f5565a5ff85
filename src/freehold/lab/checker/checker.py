"""The history checker: compares what clients and handlers recorded with what the store contains.

It knows nothing of how the store works; it reads only records, jobs and events. The simulation
uses it, and so do the chaos tests with real processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from freehold.lab.checker import (
    check_attempts,
    check_bulk,
    check_delivery,
    check_flows,
    check_lanes,
    check_limits,
    check_liveness,
    check_operations,
    check_retries,
    check_schedules,
    check_start_by,
    check_steps,
    check_tenants,
    check_waiting_keys,
)
from freehold.lab.checker.evidence import Evidence
from freehold.lab.checker.indexed_history import IndexedHistory
from freehold.lab.checker.violation import Violation

RULES: tuple[Callable[[IndexedHistory], Iterator[Violation]], ...] = (
    check_delivery.no_loss,
    check_delivery.enqueue_responses_are_true,
    check_delivery.no_duplicates,
    check_delivery.unique_keys,
    check_attempts.causes,
    check_attempts.owners,
    check_attempts.results,
    check_attempts.lost_leases,
    check_attempts.timeouts,
    check_retries.budgets,
    check_lanes.one_at_a_time,
    check_lanes.in_order,
    check_lanes.by_priority,
    check_operations.operator_responses_are_true,
    check_operations.requests,
    check_operations.paused_queues,
    check_liveness.everything_ends,
    check_liveness.no_idle_slot_beside_ready_jobs,
    check_liveness.no_part_crashes,
    check_limits.limits,
    check_tenants.nothing_crosses,
    check_schedules.one_job_for_each_tick,
    check_schedules.nothing_is_fired_backwards,
    check_schedules.no_tick_is_lost,
    check_start_by.late_jobs_never_start,
    check_start_by.started_jobs_are_not_late,
    check_waiting_keys.one_job_waits_with_a_key,
    check_waiting_keys.the_last_call_gives_the_values,
    check_waiting_keys.debounced_jobs_wait,
    check_waiting_keys.throttled_jobs_are_apart,
    check_bulk.bulk_operations_end,
    check_bulk.bulk_counts_are_true,
    check_bulk.bulk_changes_are_those_asked_for,
    check_steps.returned_steps_never_run_again,
    check_steps.stored_steps_are_those_that_returned,
    check_steps.steps_are_written_by_owners,
    check_steps.own_rows_and_their_step_are_together,
    check_steps.signals_keep_their_first_value,
    check_steps.no_signal_is_missed,
    check_flows.counters_equal_a_recount,
    check_flows.flows_close_when_all_have_ended,
    check_flows.callbacks_come_once,
    check_flows.callbacks_come_when_all_have_ended,
    check_flows.members_are_added_by_owners,
    check_flows.nodes_start_after_their_sources,
    check_flows.nodes_are_canceled_by_bad_sources,
    check_flows.nodes_get_the_results_of_their_sources,
    check_flows.gathers_wait_for_all_children,
)


def check(evidence: Evidence) -> list[Violation]:
    """Returns every violation of a rule."""
    history = IndexedHistory(evidence)
    return [violation for rule in RULES for violation in rule(history)]
