"""What was asked for is what is stored: all of it, in order, at the database's time."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from freehold.model.job import NewJob
from freehold.model.operator_actions import OperatorVerb
from freehold.model.policy import Policy
from freehold.model.retry import Retry
from freehold.model.state import Stage, State
from freehold.store.verbs.enqueue import ENQUEUE_BATCH, enqueue
from tests.stores import StoreUnderTest


@pytest.mark.requirement("S3.7")
def test_no_field_is_lost_on_the_way_in(store: StoreUnderTest) -> None:
    policy = Policy(
        retry=Retry(base_seconds=3.5, factor=1.5, cap_seconds=60.0, jitter=0.0),
        on_lease_expired="fail",
        on_cancel="pause",
        on_drain="requeue",
        lane_on_failure="skip",
    )
    job_id = store.add(
        task="mail.send",
        args=b'{"to": "a@example.org", "n": 1.50}',
        queue="mail",
        priority=-7,
        target="box 1",
        limit_key="smtp",
        unique_key="mail 1",
        max_attempts=3,
        timeout_seconds=12.5,
        tags=("a", "b"),
        policy=policy,
    )
    job = store.job(job_id)
    assert (job.task, job.queue, job.priority) == ("mail.send", "mail", -7)
    assert json.loads(job.args) == {"to": "a@example.org", "n": 1.5}
    assert (job.target, job.limit_key, job.unique_key) == ("box 1", "smtp", "mail 1")
    assert (job.attempt, job.max_attempts, job.lost_attempts) == (0, 3, 0)
    assert (job.timeout_seconds, job.tags, job.policy) == (12.5, ("a", "b"), policy)
    assert (job.state, job.lease, job.report, job.stop_request) == (State.QUEUED, None, None, None)


@pytest.mark.requirement("S3.7")
def test_the_claimer_gets_the_job_as_it_was_enqueued(store: StoreUnderTest) -> None:
    policy = Policy(on_drain="pause")
    job_id = store.add(
        args=b'{"x": [1, null, "\xc3\xa9"]}',
        queue="q",
        priority=5,
        target="lane",
        max_attempts=2,
        timeout_seconds=1.5,
        policy=policy,
    )
    attempt = store.claim_one(queue="q")
    assert (attempt.job_id, attempt.owner, attempt.task) == (job_id, "w1", "t")
    assert json.loads(attempt.args) == {"x": [1, None, "é"]}
    assert (attempt.queue, attempt.priority, attempt.target) == ("q", 5, "lane")
    assert (attempt.number, attempt.max_attempts, attempt.lost_attempts) == (1, 2, 0)
    assert (attempt.timeout_seconds, attempt.policy) == (1.5, policy)


@pytest.mark.requirement("P11", "S0.4")
def test_creation_is_stamped_by_the_databases_clock(store: StoreUnderTest) -> None:
    store.advance(123.456789)
    job = store.job(store.add())
    assert job.created_at == job.run_at == store.now()
    assert job.created_at.utcoffset() == timedelta(0)


@pytest.mark.requirement("S2.2")
def test_results_come_in_the_order_of_the_jobs(store: StoreUnderTest) -> None:
    jobs = [NewJob(task=f"t{n}", unique_key=f"k{n % 3}" if n % 2 else None) for n in range(12)]
    answers = store.store.enqueue(jobs)
    stored = store.store.read([answer.id for answer in answers])
    for job, answer in zip(jobs, answers, strict=True):
        if answer.created:
            assert stored[answer.id].task == job.task
        assert stored[answer.id].unique_key == job.unique_key
    created = [answer.id for answer in answers if answer.created]
    assert created == sorted(created)
    assert len(created) == 6 + 3


@pytest.mark.requirement("S2.2")
def test_a_call_larger_than_a_batch_loses_and_doubles_nothing(store: StoreUnderTest) -> None:
    count = ENQUEUE_BATCH + 3
    ids = [answer.id for answer in store.store.enqueue([NewJob(task="t")] * count)]
    assert ids == sorted(set(ids))
    assert len(ids) == count
    assert store.store.depth(["default"]) == count


@pytest.mark.requirement("P11", "S3.7")
def test_jobs_that_differ_only_in_their_arguments_keep_order_and_fields(
    store: StoreUnderTest,
) -> None:
    """They travel together; those between them, and before and after, go their own way."""
    policy = Policy(on_drain="pause")
    alike = [
        NewJob(
            task="a",
            args=b'{"n": %d, "s": "\xc3\xa9\\n\\""}' % n,
            queue="q",
            priority=3,
            limit_key="k",
            max_attempts=2,
            timeout_seconds=1.5,
            tags=("x", "y"),
            policy=policy,
        )
        for n in range(ENQUEUE_BATCH + 30)
    ]
    later = [NewJob(task="l", args=b"%d" % n, delay_seconds=60.0) for n in range(40)]
    lane = [NewJob(task="t", args=b"%d" % n, target="lane") for n in range(30)]
    jobs = [NewJob(task="first"), *alike, NewJob(task="odd"), *later, *lane, NewJob(task="last")]
    answers = store.store.enqueue(jobs)
    assert all(answer.created for answer in answers)
    ids = [answer.id for answer in answers]
    assert ids == sorted(set(ids))
    stored = store.store.read(ids)
    for id_, asked in zip(ids, jobs, strict=True):
        job = stored[id_]
        assert (job.task, job.args, job.queue) == (asked.task, asked.args.decode(), asked.queue)
        assert (job.priority, job.limit_key, job.target) == (
            asked.priority,
            asked.limit_key,
            asked.target,
        )
        assert (job.max_attempts, job.timeout_seconds) == (
            asked.max_attempts,
            asked.timeout_seconds,
        )
        assert (job.tags, job.policy) == (asked.tags, asked.policy)
        waits = job.run_at - job.created_at
        assert waits == timedelta(seconds=asked.delay_seconds or 0.0)
    assert [stored[id_].stage for id_ in ids[-31:-1]] == [Stage.READY, *[Stage.FOLLOWER] * 29]


@pytest.mark.requirement("P11", "S3.7")
def test_jobs_of_many_shapes_in_turn_keep_order_and_fields(store: StoreUnderTest) -> None:
    at = store.store.now() + timedelta(hours=1, microseconds=7)
    shapes: list[dict[str, Any]] = [
        {"queue": "q", "priority": -3},
        {"queue": "q", "priority": 3, "tags": ("x", '"')},
        {"run_at": at, "limit_key": "k"},
        {"delay_seconds": 60.0, "timeout_seconds": 2.5},
        {"target": "lane", "policy": Policy(on_drain="pause")},
        {"target": "other", "max_attempts": 2, "pending": True},
        {"target": "other"},
    ]
    jobs = [
        NewJob(task=f"t{n % 7}", args=b'{"n": [%d, "a,b"]}' % n, **shapes[n % 7])
        for n in range(3 * len(shapes))
    ]
    ids = [answer.id for answer in store.store.enqueue(jobs)]
    assert ids == sorted(set(ids))
    stored = [store.store.read(ids)[id_] for id_ in ids]
    for job, asked in zip(stored, jobs, strict=True):
        for name in ("task", "queue", "priority", "limit_key", "target", "max_attempts"):
            assert getattr(job, name) == getattr(asked, name)
        assert job.args == asked.args.decode()
        assert (job.timeout_seconds, job.tags, job.policy) == (
            asked.timeout_seconds,
            asked.tags,
            asked.policy,
        )
        due = asked.run_at or job.created_at + timedelta(seconds=asked.delay_seconds or 0.0)
        assert job.run_at == due
    ready, later, follower = Stage.READY, Stage.SCHEDULED, Stage.FOLLOWER
    first = [ready, ready, later, later, ready, Stage.PENDING, ready]
    more = [ready, ready, later, later, follower, Stage.PENDING, follower]
    assert [job.stage for job in stored] == first + more + more


@pytest.mark.requirement("P11")
def test_what_jobs_have_in_common_is_sent_once() -> None:
    """A statement for each job, or all columns of each job, would take longer than the insert."""
    jobs = [
        NewJob(task="t", queue=f"q{n % 5}", priority=n % 3, args=b'{"n": %d}' % n)
        for n in range(ENQUEUE_BATCH)
    ]
    (statement,) = next(enqueue(jobs)).statements
    assert statement.rows is not None
    assert [(row["queue"], row["priority"]) for row in statement.rows] == [
        (f"q{n % 5}", n % 3) for n in range(15)
    ]
    assert statement.params["numbers"] == [n % 15 for n in range(ENQUEUE_BATCH)]


def test_enqueueing_nothing_is_no_error(store: StoreUnderTest) -> None:
    assert store.store.enqueue([]) == []


@pytest.mark.requirement("S4.1", "S1.1")
def test_a_pending_job_stays_out_of_the_queue_until_it_is_put_there(store: StoreUnderTest) -> None:
    job_id = store.add(pending=True)
    assert store.state(job_id) == "pending"
    assert store.claim() == []
    answer = store.store.operate(OperatorVerb.SUBMIT, [job_id], "ann", None)[0]
    assert (answer.status, answer.state) == ("done", State.QUEUED)
    assert [attempt.job_id for attempt in store.claim()] == [job_id]


@pytest.mark.requirement("S4.1", "S1.1")
def test_a_pending_job_with_a_time_waits_for_both(store: StoreUnderTest) -> None:
    job_id = store.add(pending=True, delay_seconds=60.0)
    store.advance(30.0)
    store.store.operate(OperatorVerb.SUBMIT, [job_id], "ann", None)
    assert (store.store.make_ready(10), store.claim()) == (0, [])
    store.advance(30.0)
    assert store.store.make_ready(10) == 1
    assert store.claim_one().job_id == job_id


@pytest.mark.requirement("S4.1", "S4.3")
def test_a_pending_job_does_not_hold_its_lane(store: StoreUnderTest) -> None:
    first = store.add(target="lane", pending=True)
    second = store.add(target="lane")
    assert [attempt.job_id for attempt in store.claim()] == [second]
    store.store.operate(OperatorVerb.SUBMIT, [first], "ann", None)
    assert store.claim() == []


@pytest.mark.requirement("S2.2")
def test_ids_are_never_given_twice(store: StoreUnderTest) -> None:
    """Not even the id of the newest job after it was deleted."""
    first = store.add()
    assert store.store.delete([first]) == [first]
    assert store.add() > first
