"""The history checker: compares what clients and handlers recorded with what the store contains.

It knows nothing of how the store works; it reads only records, jobs and events. The simulation
uses it, and so do the chaos tests with real processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from freehold.lab.checker import (
    check_attempts,
    check_delivery,
    check_lanes,
    check_limits,
    check_liveness,
    check_operations,
    check_retries,
    check_schedules,
    check_tenants,
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
)


def check(evidence: Evidence) -> list[Violation]:
    """Returns every violation of a rule."""
    history = IndexedHistory(evidence)
    return [violation for rule in RULES for violation in rule(history)]
