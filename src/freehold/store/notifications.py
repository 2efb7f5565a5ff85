"""Notifications between processes: a job was enqueued or scheduled, a stop was requested.

A notification is only a hint. Losing one costs latency and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable

from freehold.store.statements import Statement

#: A job was scheduled: the time of the next sweep may change.
SCHEDULED = "@"


def queue_ready(queue: str) -> str:
    """A job of this queue can be claimed. `admit.sql` and `make_ready.sql` send it, too."""
    return f"+{queue}"


def ready_queue(topic: str) -> str | None:
    """The queue of a `queue_ready`, None for any other topic."""
    return topic[1:] if topic.startswith("+") else None


def stop_requested(owner: str) -> str:
    """A stop of one of this owner's jobs was requested. `request_stop.sql` sends it, too."""
    return f"!{owner}"


def notify_within(topics: Iterable[str]) -> Statement:
    """Part of another transaction, delivered when that commits. For rare events only: commits with
    a notification wait for each other, the slow ones included."""
    return Statement("notify", {}, [{"topic": topic} for topic in sorted(topics)])


def notify_after(topics: Iterable[str]) -> Statement:
    """A transaction of its own, which other producers can see."""
    return Statement("notify_and_record", {}, [{"topic": topic} for topic in sorted(topics)])
