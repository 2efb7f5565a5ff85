"""Retention of single queues and tasks, set by operators."""

from __future__ import annotations

from freehold.errors import BadInput
from freehold.model.audit import OPERATOR, PYTHON
from freehold.model.names import check_name
from freehold.operations.input_checks import author_of
from freehold.store.statements import Verb, method
from freehold.store.types import RetentionKind
from freehold.store.verbs import retention as retention_verbs

LONGEST_DAYS = 36_500.0


def set_retention(
    kind: RetentionKind | str,
    name: str,
    days: float | None,
    by: str = OPERATOR,
    reason: str | None = None,
    via: str = PYTHON,
) -> Verb[None]:
    """Delete the finished jobs of a queue, or of a task, after so many days; None removes the
    rule. A rule cannot keep jobs longer than `retention.history_days`."""
    try:
        chosen = RetentionKind(kind)
    except ValueError:
        raise BadInput(f"{kind!r} has no retention of its own: give queue or task") from None
    check_name(chosen.value, name)
    if days is not None and not 0 <= days <= LONGEST_DAYS:
        raise BadInput(f"days={days!r}: give 0 to {LONGEST_DAYS:g}")
    author = author_of(by, via, reason)
    yield from retention_verbs.set_retention(chosen, name, days, author)


class RetentionActions:
    set_retention = method(set_retention)
    retention_rules = method(retention_verbs.retention_rules)
