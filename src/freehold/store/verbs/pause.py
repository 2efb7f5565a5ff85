"""Pausing queues and lanes, until they are resumed or until a time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from freehold.model.audit import AuditKind, Author
from freehold.model.limit import ALL_QUEUES
from freehold.store import notifications
from freehold.store.statements import Statement, Verb, read, together
from freehold.store.verbs import audit
from freehold.store.verbs.queries import wait_for_standbys

#: The workers find the jobs of the other queues by polling.
_NOTIFIED_QUEUES = 1000


def pause_queue(
    name: str,
    by: str,
    reason: str | None,
    until: datetime | None,
    author: Author | None = None,
) -> Verb[None]:
    """Nothing of the queue is claimed until it is resumed, or until a time."""
    pause = {"by": by, "reason": reason, "until": until}
    record = audit.of_setting(author, "pause", AuditKind.QUEUE, name, _after(until))
    yield from together(*record, Statement("pause_queue", {"queue": name, **pause}))


def _after(until: datetime | None) -> dict[str, Any]:
    return {"paused": True, "paused_until": until}


def resume_queue(name: str, author: Author | None = None) -> Verb[bool]:
    """Returns whether it was paused. Notifies workers, which read an idle queue every 10 s."""
    record = audit.of_setting(
        author, "resume", AuditKind.QUEUE, name, {"paused": False}, only_if_paused=True
    )
    resume = Statement("resume_queue", {"queue": name})
    if name != ALL_QUEUES:
        *_, rows, _ = yield from together(*record, resume, _notify([name]))
    else:
        *_, rows = yield from together(*record, resume)
        ready = yield from read("ready_queues", after="", limit=_NOTIFIED_QUEUES)
        if ready:
            yield from together(_notify(queue for (queue,) in ready))
    if not rows:
        yield from wait_for_standbys()
    return bool(rows)


def _notify(queues: Iterable[str]) -> Statement:
    return notifications.notify_within(map(notifications.queue_topic, queues))


def pause_lane(
    target: str,
    by: str,
    reason: str | None,
    until: datetime | None,
    author: Author | None = None,
) -> Verb[None]:
    """Nothing of the lane is started until it is resumed, or until a time. A running job continues;
    the claim marks the next one as paused with its lane."""
    pause = {"by": by, "reason": reason, "until": until}
    record = audit.of_setting(author, "pause", AuditKind.LANE, target, _after(until))
    yield from together(*record, Statement("pause_lane", {"target": target, **pause}))


def resume_lane(target: str, author: Author | None = None) -> Verb[bool]:
    """Returns whether it was paused. Delete the pause first: from then on no job is marked. Then
    wake those that were."""
    lane = {"target": target}
    record = audit.of_setting(
        author, "resume", AuditKind.LANE, target, {"paused": False}, only_if_paused=True
    )
    *_, rows, _ = yield from together(
        *record, Statement("resume_lane", lane), Statement("wake_lane", lane)
    )
    if not rows:
        yield from wait_for_standbys()
    return bool(rows)


def wake_lanes(limit: int) -> Verb[int]:
    """Resume lanes whose pause has ended. Returns how many."""
    rows = yield from read("ended_pauses", limit=limit)
    for (target,) in rows:
        yield from resume_lane(target)
    return len(rows)
