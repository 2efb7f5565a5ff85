"""Workers are notified of new jobs soon, but not of every single one."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import psycopg
import pytest

from freehold import Freehold
from freehold.client import Client
from freehold.errors import StoreUnavailable
from freehold.model.job import NewJob
from freehold.store import notifications
from freehold.store.notifications import (
    CONCURRENT_SECONDS,
    NOTIFY_SECONDS,
    SCHEDULED,
    STREAM_SECONDS,
    NotifyLimiter,
    notifications_for,
    notify_after,
    queue_topic,
)
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.verbs.enqueue import enqueue

TOPICS = {queue_topic("default")}
ENQUEUE_SECONDS = 0.0005


class Clock:
    """Advances only when a test sets it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Producer:
    """Enqueues one job after the other."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock or Clock()
        self.limiter = NotifyLimiter(self.clock)
        self.id = 0

    def enqueue(
        self, takes: float = ENQUEUE_SECONDS, age: float | None = None, others: int = 0
    ) -> tuple[bool, bool]:
        """Returns whether it notified together with the job, and whether afterwards."""
        (topic,) = TOPICS
        notified, _ = self.limiter.with_job(topic)
        self.clock.now += takes
        self.id += 1 + others
        late = self.limiter.after_jobs(TOPICS, TOPICS if notified else (), age, self.id)
        return notified, late == [topic]

    def wait(self, seconds: float) -> None:
        self.clock.now += seconds


def test_topics_are_forgotten_before_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "_TOPICS_LIMIT", 3)
    limiter = NotifyLimiter(lambda: 0.0)
    assert all(limiter.with_job(f"+{number}")[0] for number in range(10))
    assert len(limiter._topics) <= 3


def test_a_producer_of_occasional_jobs_notifies_with_each_of_them() -> None:
    producer = Producer()
    for _ in range(5):
        assert producer.enqueue() == (True, False)
        producer.wait(NOTIFY_SECONDS)


def test_a_second_job_within_the_interval_is_not_notified() -> None:
    producer = Producer()
    assert producer.enqueue() == (True, False)
    assert producer.enqueue() == (False, False)


def test_a_stream_of_jobs_is_notified_once_per_interval() -> None:
    producer = Producer()
    notified = [producer.enqueue() for _ in range(1000)]
    assert not any(after for _, after in notified)
    expected = 1000 * ENQUEUE_SECONDS / STREAM_SECONDS
    assert expected <= sum(before for before, _ in notified) <= 1.2 * expected + 1


def test_a_job_that_took_long_to_store_is_notified_afterwards() -> None:
    """A worker that was notified before has found nothing, and waits again."""
    producer = Producer()
    producer.enqueue()
    producer.wait(ENQUEUE_SECONDS)
    assert producer.enqueue(takes=STREAM_SECONDS) == (False, True)


def test_a_recent_notification_of_another_producer_is_enough() -> None:
    producer = Producer()
    assert producer.enqueue(age=0.002) == (True, False)  # the first job does not know it yet
    for _ in range(3):
        producer.wait(1.0)
        assert producer.enqueue(age=0.002) == (False, False)
    producer.wait(1.0)
    assert producer.enqueue(age=0.5) == (False, True)  # the others have stopped
    producer.wait(1.0)
    assert producer.enqueue(age=0.5) == (True, False)


def test_own_notifications_do_not_count_as_those_of_others() -> None:
    producer = Producer()
    producer.enqueue()
    for _ in range(5):
        producer.wait(0.01)
        assert producer.enqueue(age=0.01) == (True, False)


def test_many_producers_notify_as_rarely_as_a_stream() -> None:
    producer = Producer()
    producer.enqueue(age=0.001)
    for _ in range(20):
        producer.wait(0.01)
        assert producer.enqueue(age=STREAM_SECONDS - 0.001, others=30) == (False, False)
    producer.wait(0.01)
    assert producer.enqueue(age=2 * STREAM_SECONDS, others=30) == (False, True)
    producer.wait(0.01)
    assert producer.enqueue(age=0.01) == (True, False)  # the recorded one is its own


def test_with_many_producers_a_slow_job_is_left_to_the_others() -> None:
    producer = Producer()
    producer.enqueue(age=0.001)
    for takes, notified in ((2 * STREAM_SECONDS, False), (1.1 * CONCURRENT_SECONDS, True)):
        assert producer.enqueue(takes, age=0.001, others=60) == (False, notified)


def test_one_of_many_producers_notifies_when_the_interval_expires_for_all() -> None:
    """Each sees the age of the last notification, and none has sent a new one yet."""
    clock, size = Clock(), 32
    producers = [Producer(clock) for _ in range(size)]
    for turn in range(20):
        for number, producer in enumerate(producers, 1):
            producer.id = turn * size + number - 1
            clock.now += 0.3 * ENQUEUE_SECONDS
            producer.enqueue(age=STREAM_SECONDS / 2)
    count = 0
    for number, producer in enumerate(producers, 1):
        producer.id = 20 * size + number - 1
        clock.now += 0.3 * ENQUEUE_SECONDS
        count += sum(producer.enqueue(age=STREAM_SECONDS))
    assert count == 1


def test_after_a_clock_was_set_back_ages_are_ignored() -> None:
    producer = Producer()
    for _ in range(3):
        assert producer.enqueue(age=-3600.0) == (True, False)
        producer.wait(1.0)


def test_a_notification_that_failed_with_its_job_is_sent_again() -> None:
    limiter = NotifyLimiter(Clock())
    failing, canceled, good = (enqueue([NewJob(task="t")], limiter) for _ in range(3))
    assert next(failing).notification == notify_after(TOPICS)
    with contextlib.suppress(StoreUnavailable):
        failing.throw(StoreUnavailable("no connection"))
    assert next(canceled).notification == notify_after(TOPICS)
    canceled.close()  # as when its task is cancelled
    assert next(good).notification == notify_after(TOPICS)


def test_notifications_of_a_queue_do_not_replace_those_of_scheduled_jobs() -> None:
    clock = Clock()
    limiter = NotifyLimiter(clock)
    for _ in range(3):
        verb = enqueue([NewJob(task="t", delay_seconds=5.0)], limiter)
        assert next(verb).notification == notify_after({SCHEDULED})
        with contextlib.suppress(StopIteration):
            verb.send([[(1, 0, 0.001)]])
        clock.now += 1.0


def test_topics_contain_each_queue_once_and_scheduled_jobs() -> None:
    jobs = [
        NewJob(task="t"),
        NewJob(task="t"),
        NewJob(task="t", queue="mail"),
        NewJob(task="t", queue="later", delay_seconds=5.0),
        NewJob(task="t", pending=True),
    ]
    assert notifications_for(jobs) == {queue_topic("default"), queue_topic("mail"), SCHEDULED}
    assert notifications_for([NewJob(task="t", pending=True)]) == set()


def test_a_run_at_that_may_have_passed_is_notified_as_ready_and_as_scheduled() -> None:
    """An idle worker that is only notified of a scheduled job would not claim it now."""
    past = datetime(2020, 1, 1, tzinfo=UTC)
    assert notifications_for([NewJob(task="t", run_at=past)]) == {queue_topic("default"), SCHEDULED}


def test_a_client_gets_the_age_of_others_notifications_with_its_job(postgres_url: str) -> None:
    first, second = Freehold(postgres_url), PostgresDatabase(postgres_url)
    first.migrate()
    clock = Clock()  # independent of the duration of the test
    client = Client(second, clock)
    with psycopg.connect(postgres_url, autocommit=True) as listener:
        listener.execute("listen freehold_freehold")
        first._client.enqueue([NewJob(task="work")])
        assert next(listener.notifies(timeout=120)).payload == queue_topic("default")
        # The last notification is always "just now".
        listener.execute(
            "create or replace function freehold.clock() returns timestamptz "
            "language sql volatile as 'select timestamptz ''2030-01-01'''"
        )
        record = "update freehold.last_notified set at = freehold.clock() where topic = '+default'"
        assert listener.execute(record).rowcount == 1
        client.enqueue([NewJob(task="work")])  # notifies, because it did not know
        assert next(listener.notifies(timeout=120)).payload == queue_topic("default")
        assert listener.execute(record).rowcount == 1
        clock.now += 1.0
        client.enqueue([NewJob(task="work")])
        assert list(listener.notifies(timeout=0.2)) == []
    first.close()
    second.close()


def test_a_plain_job_takes_one_statement_in_a_callers_transaction_too() -> None:
    group = next(enqueue([NewJob(task="any")]))
    assert [statement.name for statement in group.statements] == ["enqueue_plain"]
