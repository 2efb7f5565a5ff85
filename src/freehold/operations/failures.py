"""The newest failures, in groups. The grouping is in `model/failures.py`."""

from __future__ import annotations

from freehold.model.failures import Failures, group
from freehold.store.statements import Verb, method
from freehold.store.verbs import queries

#: Unsuccessful jobs that are examined, the newest.
FAILURES_BOUND = 5_000


def failures() -> Verb[Failures]:
    """The failed ones among the newest 5,000 unsuccessful jobs, grouped by task, type of the error,
    and message without its numbers and ids."""
    found, looked_at = yield from queries.recent_failures(FAILURES_BOUND)
    return Failures(group(found), looked_at, FAILURES_BOUND)


class FailureActions:
    failures = method(failures)
