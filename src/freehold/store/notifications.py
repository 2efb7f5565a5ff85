"""Hints between processes: that something was enqueued, scheduled, or asked of an owner.

A hint is never the truth. Losing one costs latency and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable

from freehold.store.statements import Statement

#: Something will be due that was not there before.
SCHEDULED = "@"


def queue_ready(queue: str) -> str:
    """A job of this queue can be claimed."""
    return f"+{queue}"


def stop_requested(owner: str) -> str:
    """Something was asked of this owner's jobs. `ask.sql` sends it too."""
    return f"!{owner}"


def notify_within(hints: Iterable[str]) -> Statement:
    """Part of another transaction: heard when that commits. For what happens rarely, because a
    commit that notifies makes others wait, and one that waits for the disk for long."""
    return Statement("tell", {}, [{"hint": hint} for hint in sorted(hints)])


def notify_after(hints: Iterable[str]) -> Statement:
    """A transaction of its own, whose traces other clients can see."""
    return Statement("cry", {}, [{"hint": hint} for hint in sorted(hints)])
