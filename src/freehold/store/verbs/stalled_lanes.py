"""The scan for lanes without a holder: a safety net, because every verb that removes a job promotes
the next one (`lanes`). A process can die in between, or the next job can be one that the database
refuses to write: it is then set aside, and keeps its place in the lane until a person decides."""

from __future__ import annotations

from freehold.errors import RowRefused
from freehold.store import notifications
from freehold.store.statements import Verb, read, together_retrying_lanes
from freehold.store.types import LaneScan, SetAside
from freehold.store.verbs.lanes import promotion
from freehold.store.verbs.set_aside import set_aside_stalled


def promote_stalled_lanes(after: str, limit: int) -> Verb[LaneScan]:
    """Scan this many lanes after ``after``, and promote the next job of those without a holder."""
    rows = yield from read("stalled_lanes", after=after, limit=limit)
    freed: list[str] = []
    aside: list[SetAside] = []
    for target, queue, job_id, stage in rows:
        if queue is None:
            continue
        ready = notifications.notify_within([notifications.queue_topic(queue)])
        try:
            # One by one, so that no lock is held while waiting for another.
            yield from together_retrying_lanes(promotion([target]), ready)
            freed.append(target)
        except RowRefused as error:
            aside += yield from set_aside_stalled(job_id, stage, target, error)
    return LaneScan(tuple(freed), rows[-1][0] if len(rows) == limit else "", tuple(aside))
