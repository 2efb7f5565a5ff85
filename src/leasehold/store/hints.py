"""Hints between processes: that something was enqueued, scheduled, or asked of an owner.

A hint is never the truth. Losing one costs latency and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable

from leasehold.store.steps import Batch, Statement, Steps

#: Something will be due that was not there before.
SCHEDULED = "@"


def ready(queue: str) -> str:
    """A job of this queue can be claimed."""
    return f"+{queue}"


def asked(owner: str) -> str:
    """Something was asked of this owner's jobs. `ask.sql` sends it too."""
    return f"!{owner}"


def telling(hints: Iterable[str]) -> Statement:
    """Part of another transaction: heard when that commits. For what happens rarely."""
    return Statement("tell", {}, [{"hint": hint} for hint in sorted(hints)])


def tell(hints: Iterable[str]) -> Steps[None]:
    """Send hints now, in a transaction of their own: a commit that notifies makes others wait,
    and a commit that waits for the disk would make them wait for long."""
    yield Batch((telling(hints),), writes=False)
