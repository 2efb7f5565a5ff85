"""The history checker: holds what was recorded against what is stored.

It knows nothing of how the store works; it reads records, jobs and events, as anybody could. The
simulation uses it, and so does whoever lets real processes break.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from leasehold.proof import attempts, budgets, delivery, ending, lanes, limits, operations, tenants
from leasehold.proof.case import Case
from leasehold.proof.evidence import Evidence
from leasehold.proof.violation import Violation

RULES: tuple[Callable[[Case], Iterator[Violation]], ...] = (
    delivery.no_loss,
    delivery.honest_enqueues,
    delivery.nothing_twice,
    delivery.unique_keys,
    attempts.causes,
    attempts.owners,
    attempts.results,
    attempts.lost_leases,
    attempts.timeouts,
    budgets.budgets,
    lanes.one_at_a_time,
    lanes.in_order,
    lanes.by_priority,
    operations.honest_operations,
    operations.requests,
    operations.paused_queues,
    ending.everything_ends,
    ending.nobody_waits,
    ending.nobody_breaks,
    limits.limits,
    tenants.nothing_crosses,
)


def check(evidence: Evidence) -> list[Violation]:
    """Every broken promise; none is the proof."""
    case = Case(evidence)
    return [violation for rule in RULES for violation in rule(case)]
