"""Pausing queues and lanes, until they are resumed or until a time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from freehold.model.limit import ALL_QUEUES
from freehold.store import notifications
from freehold.store.statements import Statement, Verb, read, together, write

#: The workers find the jobs of the other queues by polling.
_NOTIFIED_QUEUES = 1000


def pause_queue(name: str, by: str, reason: str | None, until: datetime | None) -> Verb[None]:
    """Nothing of the queue is claimed until it is resumed, or until a time."""
    yield from write("pause_queue", queue=name, by=by, reason=reason, until=until)


def resume_queue(name: str) -> Verb[bool]:
    """Returns whether it was paused. Notifies workers, which read an idle queue every 10 s."""
    resume = Statement("resume_queue", {"queue": name})
    if name != ALL_QUEUES:
        rows, _ = yield from together(resume, _notify([name]))
        return bool(rows)
    (rows,) = yield from together(resume)
    ready = yield from read("ready_queues", after="", limit=_NOTIFIED_QUEUES)
    if ready:
        yield from together(_notify(queue for (queue,) in ready))
    return bool(rows)


def _notify(queues: Iterable[str]) -> Statement:
    return notifications.notify_within(map(notifications.queue_ready, queues))


def pause_lane(target: str, by: str, reason: str | None, until: datetime | None) -> Verb[None]:
    """Nothing of the lane is started until it is resumed, or until a time. A running job continues;
    the claim marks the next one as paused with its lane."""
    yield from write("pause_lane", target=target, by=by, reason=reason, until=until)


def resume_lane(target: str) -> Verb[bool]:
    """Returns whether it was paused. Delete the pause first: from then on no job is marked. Then
    wake those that were."""
    answers = yield from together(
        Statement("resume_lane", {"target": target}), Statement("wake_lane", {"target": target})
    )
    return bool(answers[0])


def wake_lanes(limit: int) -> Verb[int]:
    """Resume lanes whose pause has ended. Returns how many."""
    rows = yield from read("ended_pauses", limit=limit)
    for (target,) in rows:
        yield from resume_lane(target)
    return len(rows)
