"""Notifications between processes: a job was enqueued or scheduled, a stop was requested, a job has
ended.

A notification is only a hint. Losing one costs latency and nothing else.

An enqueue notifies workers once per queue and interval, not with every job: a notification costs a
producer a quarter of its time, and a worker that was just woken claims again soon anyway, for as
long as it finds jobs. Two policies choose the interval; the second replaces the first where it
applies:

    policy               applies                                          interval
    OwnNotifications     always: after our last notification              NOTIFY_SECONDS
                         our jobs keep coming                             STREAM_SECONDS
    OthersNotifications  another producer has notified recently           STREAM_SECONDS
                         many producers do, and take turns                CONCURRENT_SECONDS

The second needs the age of the last notification of any producer, which the store returns with a
stored job if asked. It notifies in a second round trip, because only then the age is known; the
first notifies together with the jobs, in the same round trip, which is cheaper. Both are
transactions of their own, after the jobs are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from operator import attrgetter

from freehold.model.job import NewJob
from freehold.store.statements import Statement

#: A job was scheduled: the time of the next sweep may change.
SCHEDULED = "@"
_ENDED = "="
#: The ids of one topic: PostgreSQL sends at most 8,000 bytes.
_IDS_LIMIT = 300

#: A worker that was woken claims again about this soon: a second notification would be wasted.
NOTIFY_SECONDS = 0.004
#: Interval while a producer's jobs come less than NOTIFY_SECONDS apart: the workers keep finding
#: jobs, and an empty claim is repeated within 20 ms.
STREAM_SECONDS = 0.02
#: With many producers, others notify of later jobs. If this job was the last for a while, a worker
#: that found nothing twice claims once more within this time.
CONCURRENT_SECONDS = 0.08
#: Enqueueing takes a while. An interval that ends within this time counts as over, because a
#: notification together with the jobs is cheaper than one of its own afterwards.
_LEFT_SECONDS = 0.001
_TOPICS_LIMIT = 10_000
_NEVER = float("-inf")


def queue_topic(queue: str) -> str:
    """A job of this queue can be claimed. `admit.sql` and `make_ready.sql` send it, too."""
    return f"+{queue}"


def queue_of(topic: str) -> str | None:
    """The queue of a `queue_topic`, None for any other topic."""
    return topic[1:] if topic.startswith("+") else None


def stop_topic(owner: str) -> str:
    """A stop of one of this owner's jobs was requested. `request_stop.sql` sends it, too."""
    return f"!{owner}"


def notify_ended(ids: Sequence[int]) -> Statement:
    """These jobs have ended, and callers wait for them."""
    parts = [ids[start : start + _IDS_LIMIT] for start in range(0, len(ids), _IDS_LIMIT)]
    return notify_within(_ENDED + ",".join(map(str, part)) for part in parts)


def ended_jobs(topic: str) -> list[int]:
    """The ids of `notify_ended`, none for any other topic."""
    return [int(each) for each in topic[1:].split(",")] if topic.startswith(_ENDED) else []


def notify_within(topics: Iterable[str]) -> Statement:
    """Without a record. As one of the statements of a group, or in a caller's transaction, it is
    delivered when that commits. For rare events only: commits with a notification wait for each
    other, the slow ones included."""
    return Statement("notify", {}, [{"topic": topic} for topic in sorted(topics)])


def notify_after(topics: Iterable[str]) -> Statement:
    """With a record of its time, which other producers read. In a transaction of its own."""
    return Statement("notify_and_record", {}, [{"topic": topic} for topic in sorted(topics)])


def notifications_for(jobs: Sequence[NewJob]) -> set[str]:
    """The topics of which workers should be notified for these jobs."""
    if len(jobs) == 1 and jobs[0].is_due_at_once:
        return {queue_topic(jobs[0].queue)}
    topics = set()
    # Jobs of one call have few kinds: one of each is looked at.
    for job in {_kind(job): job for job in jobs}.values():
        if job.pending:
            continue
        if not job.is_due_at_once:
            topics.add(SCHEDULED)
        if not job.delay_seconds:  # run_at may have passed already: only the store knows the time
            topics.add(queue_topic(job.queue))
    return topics


_kind = attrgetter("queue", "pending", "run_at", "delay_seconds", "waiting")


class OwnNotifications:
    """The interval between notifications of this producer."""

    __slots__ = ("interval", "is_stream", "job_at", "sent_at")

    def __init__(self) -> None:
        self.sent_at = self.job_at = _NEVER
        self.interval = NOTIFY_SECONDS
        #: Whether our jobs keep coming.
        self.is_stream = False

    def add_job(self, now: float) -> None:
        self.is_stream = now - self.job_at < NOTIFY_SECONDS
        self.interval = STREAM_SECONDS if self.is_stream else NOTIFY_SECONDS
        self.job_at = now


class OthersNotifications:
    """For how long a notification of another producer is enough."""

    __slots__ = ("interval",)

    def __init__(self) -> None:
        #: Zero: there are no others. If they stop notifying, the next stored job shows it.
        self.interval = 0.0

    def observe(
        self, own: OwnNotifications, age: float | None, producers: int, last_id: int
    ) -> bool:
        """Whether another producer has notified recently enough for the job that was just stored.
        ``age``: seconds since the last notification of any producer."""
        recent = STREAM_SECONDS if producers else NOTIFY_SECONDS
        # With many concurrent producers the interval expires for all of them at once. One is
        # elected by job id modulo their number; the others wait one interval longer as a fallback.
        if producers and last_id % producers:
            recent *= 2
        # A negative age: the server's clock was set back, and ages mean nothing for a while.
        if age is None or not 0 <= age < recent:
            self.interval = 0.0
            return False
        # Our own notifications are recorded, too. Among many producers it does not matter.
        if producers or own.job_at - own.sent_at > age + _LEFT_SECONDS:
            self.interval = CONCURRENT_SECONDS if producers else STREAM_SECONDS
            return True
        return False


class _Topic:
    """What is known of one topic."""

    __slots__ = ("notified_at", "others", "own")

    def __init__(self) -> None:
        self.own = OwnNotifications()
        self.others = OthersNotifications()
        #: The last notification, of this producer or of another.
        self.notified_at = _NEVER


class _Topics(dict[str, _Topic]):
    """Made when they are looked up. Names of queues may be many and short-lived; to forget them
    costs a notification for each."""

    def __missing__(self, topic: str) -> _Topic:
        if len(self) >= _TOPICS_LIMIT:
            self.clear()
        made = self[topic] = _Topic()
        return made


class NotifyLimiter:
    """Remembers recent notifications, of this producer and of others."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._topics = _Topics()
        #: The last job of this producer, and when it was stored.
        self._last = (0, _NEVER)

    def with_job(self, topic: str) -> tuple[bool, bool]:
        """Whether to notify together with the jobs; and whether the age of others' notifications
        matters: not while our own jobs keep coming."""
        now, state = self._now(), self._topics[topic]
        own = state.own
        own.add_job(now)
        age = now + _LEFT_SECONDS - state.notified_at
        if state.others.interval or age < own.interval:
            return False, not own.is_stream
        state.notified_at = now  # other calls of this producer rely on it from here on
        return True, not own.is_stream

    def failed(self, topic: str) -> None:
        """It is unknown whether the notification was sent: the next job sends it again."""
        self._topics[topic].notified_at = _NEVER

    def after_jobs(
        self, topics: Iterable[str], notified: Collection[str], age: float | None, last_id: int
    ) -> list[str]:
        """The topics to notify of after jobs up to ``last_id`` were stored, beside those that were
        notified together with them. ``age``: seconds since the last notification of any producer,
        where the store returned it."""
        now, (id_before, at) = self._now(), self._last
        self._last = last_id, now
        # About how many producers there are: the jobs that were stored since our last one, if they
        # keep coming, because ids are drawn in turn. Zero if they do not.
        drawn = last_id - id_before
        producers = drawn if now - at < NOTIFY_SECONDS * drawn else 0
        left = []
        for topic in topics:
            state = self._topics[topic]
            if state.others.observe(state.own, age, producers, last_id):
                # A worker that was notified long before this job has stopped claiming again soon.
                state.notified_at = max(state.notified_at, state.own.job_at)
            if topic not in notified:
                if now - state.notified_at < (state.others.interval or state.own.interval):
                    continue
                left.append(topic)
            state.notified_at = state.own.sent_at = now
        return left
