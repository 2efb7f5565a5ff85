"""Workers are told of new jobs: soon, but not with every one of them."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime

import psycopg

from freehold import Freehold
from freehold.client import Client
from freehold.errors import StoreUnavailable
from freehold.model.job import NewJob
from freehold.store.notifications import SCHEDULED, notify_after, queue_ready
from freehold.store.notify_limiter import (
    CONCURRENT_SECONDS,
    NOTIFY_SECONDS,
    STREAM_SECONDS,
    NotifyLimiter,
    notifications_for,
)
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.verbs.enqueue import enqueue

NEWS = {queue_ready("default")}
A_MOMENT = 0.0005


class Watch:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Producer:
    """Enqueues one job after the other, and counts what it has told."""

    def __init__(self, watch: Watch | None = None) -> None:
        self.watch = watch or Watch()
        self.crier = NotifyLimiter(self.watch)
        self.id = 0

    def enqueue(
        self, takes: float = A_MOMENT, ago: float | None = None, others: int = 0
    ) -> tuple[bool, bool]:
        """Whether it told with the job, and whether afterwards."""
        (hint,) = NEWS
        told = self.crier.before(hint)
        self.watch.now += takes
        self.id += 1 + others
        crowd = self.crier.crowd(self.id)
        return told, self.crier.after(hint, told, ago, crowd)

    def rest(self, seconds: float) -> None:
        self.watch.now += seconds


def test_who_enqueues_now_and_then_tells_each_time_together_with_the_job() -> None:
    producer = Producer()
    for _ in range(5):
        assert producer.enqueue() == (True, False)
        producer.rest(NOTIFY_SECONDS)


def test_a_second_job_within_the_time_in_which_workers_look_again_is_not_told() -> None:
    producer = Producer()
    assert producer.enqueue() == (True, False)
    assert producer.enqueue() == (False, False)


def test_a_stream_is_told_once_in_a_while() -> None:
    producer = Producer()
    told = [producer.enqueue() for _ in range(1000)]
    assert not any(after for _, after in told)
    expected = 1000 * A_MOMENT / STREAM_SECONDS
    assert expected <= sum(before for before, _ in told) <= 1.2 * expected + 1


def test_a_job_that_took_long_to_store_is_told_afterwards() -> None:
    """Whoever had been told before has looked in vain, and waits."""
    producer = Producer()
    producer.enqueue()
    producer.rest(A_MOMENT)
    assert producer.enqueue(takes=STREAM_SECONDS) == (False, True)


def test_what_others_have_just_told_is_not_told_again() -> None:
    producer = Producer()
    assert producer.enqueue(ago=0.002) == (True, False)  # it cannot know yet
    for _ in range(3):
        producer.rest(1.0)
        assert producer.enqueue(ago=0.002) == (False, False)
    producer.rest(1.0)
    assert producer.enqueue(ago=0.5) == (False, True)  # they do so no more
    producer.rest(1.0)
    assert producer.enqueue(ago=0.5) == (True, False)


def test_its_own_hints_are_not_taken_for_those_of_others() -> None:
    producer = Producer()
    producer.enqueue()
    for _ in range(5):
        producer.rest(0.01)
        assert producer.enqueue(ago=0.01) == (True, False)


def test_among_many_others_it_is_told_as_rarely_as_in_a_stream() -> None:
    producer = Producer()
    producer.enqueue(ago=0.001)
    for _ in range(20):
        producer.rest(0.01)
        assert producer.enqueue(ago=STREAM_SECONDS - 0.001, others=30) == (False, False)
    producer.rest(0.01)
    assert producer.enqueue(ago=2 * STREAM_SECONDS, others=30) == (False, True)
    producer.rest(0.01)
    assert producer.enqueue(ago=0.01) == (True, False)  # now its own


def test_among_many_others_also_one_that_took_long_is_left_to_them() -> None:
    producer = Producer()
    producer.enqueue(ago=0.001)
    for takes, told in ((2 * STREAM_SECONDS, False), (1.1 * CONCURRENT_SECONDS, True)):
        assert producer.enqueue(takes, ago=0.001, others=60) == (False, told)


def test_of_many_who_see_at_once_that_it_is_time_one_tells() -> None:
    """Each sees what was told when its job was stored, and nobody has told anything yet."""
    watch, size = Watch(), 32
    producers = [Producer(watch) for _ in range(size)]
    for turn in range(20):
        for number, producer in enumerate(producers, 1):
            producer.id = turn * size + number - 1
            watch.now += 0.3 * A_MOMENT
            producer.enqueue(ago=STREAM_SECONDS / 2)
    told = 0
    for number, producer in enumerate(producers, 1):
        producer.id = 20 * size + number - 1
        watch.now += 0.3 * A_MOMENT
        told += sum(producer.enqueue(ago=STREAM_SECONDS))
    assert told == 1


def test_a_clock_that_was_set_back_says_nothing_about_others() -> None:
    producer = Producer()
    for _ in range(3):
        assert producer.enqueue(ago=-3600.0) == (True, False)
        producer.rest(1.0)


def test_nobody_counts_on_a_hint_that_went_down_with_its_job() -> None:
    crier = NotifyLimiter(Watch())
    failing, given_up, good = (enqueue([NewJob(task="t")], crier) for _ in range(3))
    assert next(failing).then == notify_after(NEWS)
    with contextlib.suppress(StoreUnavailable):
        failing.throw(StoreUnavailable("no connection"))
    assert next(given_up).then == notify_after(NEWS)
    given_up.close()  # as when its task is cancelled
    assert next(good).then == notify_after(NEWS)


def test_what_others_tell_of_a_queue_is_no_word_of_what_will_be_due() -> None:
    watch = Watch()
    crier = NotifyLimiter(watch)
    for _ in range(3):
        verb = enqueue([NewJob(task="t", delay_seconds=5.0)], crier)
        assert next(verb).then == notify_after({SCHEDULED})
        with contextlib.suppress(StopIteration):
            verb.send([[(1, 0.001)]])
        watch.now += 1.0


def test_news_name_queues_once_and_say_that_something_will_be_due() -> None:
    jobs = [
        NewJob(task="t"),
        NewJob(task="t"),
        NewJob(task="t", queue="mail"),
        NewJob(task="t", queue="later", delay_seconds=5.0),
        NewJob(task="t", pending=True),
    ]
    assert notifications_for(jobs) == {queue_ready("default"), queue_ready("mail"), SCHEDULED}
    assert notifications_for([NewJob(task="t", pending=True)]) == set()


def test_a_time_that_may_have_come_already_is_told_as_both() -> None:
    """An idle worker that heard only that something will be due would not look for it now."""
    past = datetime(2020, 1, 1, tzinfo=UTC)
    assert notifications_for([NewJob(task="t", run_at=past)]) == {queue_ready("default"), SCHEDULED}


def test_a_client_sees_in_the_answer_to_its_job_what_others_have_told(postgres_url: str) -> None:
    first, second = Freehold(postgres_url), PostgresDatabase(postgres_url)
    first.migrate()
    watch = Watch()  # however long it takes
    client = Client(second, watch)
    with psycopg.connect(postgres_url, autocommit=True) as listener:
        listener.execute("listen freehold_freehold")
        first.client.enqueue([NewJob(task="work")])
        assert next(listener.notifies(timeout=120)).payload == queue_ready("default")
        # As if it were just now, whenever that is.
        listener.execute(
            "create or replace function freehold.clock() returns timestamptz "
            "language sql volatile as 'select timestamptz ''2030-01-01'''"
        )
        tell = "update freehold.told set at = freehold.clock() where hint = '+default'"
        assert listener.execute(tell).rowcount == 1
        client.enqueue([NewJob(task="work")])  # tells, because it did not know
        assert next(listener.notifies(timeout=120)).payload == queue_ready("default")
        assert listener.execute(tell).rowcount == 1
        watch.now += 1.0
        client.enqueue([NewJob(task="work")])
        assert list(listener.notifies(timeout=0.2)) == []
    first.close()
    second.close()


def test_a_plain_job_goes_the_short_way_in_a_callers_transaction_too() -> None:
    batch = next(enqueue([NewJob(task="any")]))
    assert [statement.name for statement in batch.statements] == ["enqueue_plain"]
