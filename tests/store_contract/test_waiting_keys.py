"""Keys that a job holds until a worker takes it: never two waiting jobs of one key."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from freehold.model.job import Enqueued, NewJob
from freehold.model.meta import encode_meta
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.model.policy import Policy
from freehold.model.state import Stage
from freehold.model.waiting import Debounce, Throttle, Unique, waiting_of
from freehold.store.statements import Rows, Session, StatementGroup, run
from freehold.store.verbs.enqueue import enqueue
from tests.stores import StoreUnderTest

pytestmark = pytest.mark.requirement("N4")


def unique(n: int = 0, *replace: Any, key: str = "k", **fields: Any) -> NewJob:
    option = Unique(key, until="start", replace=replace)
    return NewJob(task="t", args=b'{"n":%d}' % n, waiting=waiting_of("t", option), **fields)


def debounce(n: int = 0, at_most: float | None = None, **fields: Any) -> NewJob:
    waiting = waiting_of("t", Debounce("k", 30, at_most))
    return NewJob(task="t", args=b'{"n":%d}' % n, delay_seconds=30.0, waiting=waiting, **fields)


def throttle(n: int = 0, **fields: Any) -> NewJob:
    waiting = waiting_of("t", Throttle("k", 60))
    return NewJob(task="t", args=b'{"n":%d}' % n, waiting=waiting, **fields)


def put(store: StoreUnderTest, job: NewJob) -> Enqueued:
    return store.store.enqueue([job])[0]


def due_in(store: StoreUnderTest, job_id: int) -> float:
    return (store.job(job_id).run_at - store.now()).total_seconds()


def test_a_second_call_returns_the_job_that_waits(store: StoreUnderTest) -> None:
    first = put(store, unique(1))
    assert first.created
    assert first.created_at == store.now()
    store.advance(5)
    again = put(store, unique(2))
    assert (again.id, again.created, again.replaced) == (first.id, False, False)
    assert again.created_at == first.created_at
    assert store.job(first.id).args == '{"n":1}'
    assert store.job(first.id).waiting_key == "unique/t/k"


def test_one_job_waits_beside_the_one_that_runs(store: StoreUnderTest) -> None:
    first = put(store, unique(1))
    store.claim_one()
    second, third = put(store, unique(2)), put(store, unique(3))
    assert second.created
    assert (third.id, third.created) == (second.id, False)
    assert second.id != first.id


RETURNS = {
    "an error": (OutcomeKind.ERROR, {"delay_seconds": 0.0}),
    "a later retry": (OutcomeKind.RETRY_LATER, {"delay_seconds": 60.0}),
    "a snooze": (OutcomeKind.SNOOZE, {"delay_seconds": 0.0}),
    "a pause": (OutcomeKind.PAUSE, {}),
    "a drain": (OutcomeKind.DRAIN, {}),
    "a worker that gives it back": (OutcomeKind.GIVE_BACK, {}),
    "a misfit": (OutcomeKind.MISFIT, {"delay_seconds": 60.0}),
}


@pytest.mark.parametrize(("kind", "fields"), RETURNS.values(), ids=RETURNS.keys())
@pytest.mark.parametrize("target", [None, "lane"])
def test_a_retry_never_collides_with_a_newer_job_of_its_key(
    store: StoreUnderTest, kind: OutcomeKind, fields: dict[str, Any], target: str | None
) -> None:
    first = put(store, unique(1, target=target))
    attempt = store.claim_one()
    second = put(store, unique(2, "args", target=target))
    assert store.end(attempt, kind, **fields)
    assert store.job(first.id).waiting_key is None, "it does not meet the newer one"
    third = put(store, unique(3, "args", target=target))
    assert (third.id, third.replaced) == (second.id, True)
    assert store.job(first.id).args == '{"n":1}', "a job that a worker took is not replaced"


@pytest.mark.parametrize("target", [None, "lane"])
def test_a_lost_worker_leaves_no_collision(store: StoreUnderTest, target: str | None) -> None:
    first = put(store, unique(1, target=target))
    store.claim_one()
    second = put(store, unique(2, target=target))
    store.advance(31)
    (recovered,) = store.store.recover(10, 0.5)
    assert recovered.attempt.job_id == first.id
    assert store.job(first.id).waiting_key is None
    assert put(store, unique(3)).id == second.id


def test_a_row_beside_a_newer_one_is_not_taken_for_broken(store: StoreUnderTest) -> None:
    """The trial of set_aside puts leased rows back: that must not meet the index of keys."""
    put(store, unique(1))
    store.claim_one()
    put(store, unique(2))
    store.advance(31)
    assert store.store.set_aside_swept() == []


def test_a_replaced_job_has_exactly_the_named_values(store: StoreUnderTest) -> None:
    first = put(store, unique(1, priority=1, tags=("a",), meta_json=encode_meta({"v": 1})))
    changes: dict[str, Any] = {"priority": 2, "tags": ("b",), "meta_json": encode_meta({"v": 2})}
    for names, expected in (
        (("args",), ('{"n":2}', 1, ("a",), {"v": 1})),
        (("priority",), ('{"n":2}', 2, ("a",), {"v": 1})),
        (("meta", "tags"), ('{"n":2}', 2, ("b",), {"v": 2})),
    ):
        again = put(store, unique(2, *names, **changes))
        assert (again.id, again.created, again.replaced) == (first.id, False, True)
        job = store.job(first.id)
        assert (job.args, job.priority, job.tags, job.meta) == expected
    assert store.job(first.id).created_at == store.now()


def test_replaced_arguments_bring_the_names_of_their_secrets(store: StoreUnderTest) -> None:
    first = put(store, unique(1))
    put(store, unique(2, "args", policy=Policy(secret_args=("n",))))
    assert "2" not in store.job(first.id).args


def test_a_job_in_a_workers_hands_is_never_replaced(store: StoreUnderTest) -> None:
    first = put(store, unique(1))
    attempt = store.claim_one()
    second = put(store, unique(2, "args", "priority"))
    assert second.created
    assert (store.job(first.id).args, attempt.args) == ('{"n":1}', '{"n":1}')


def test_a_replaced_time_moves_the_job_both_ways(store: StoreUnderTest) -> None:
    first = put(store, unique(1))
    assert put(store, unique(1, "run_at", delay_seconds=60.0)).id == first.id
    assert (store.job(first.id).stage, due_in(store, first.id)) == (Stage.SCHEDULED, 60)
    assert store.claim() == []
    put(store, unique(1, "run_at"))
    assert store.job(first.id).stage is Stage.READY
    assert store.claim_one().job_id == first.id


def test_a_job_in_its_lane_keeps_its_place(store: StoreUnderTest) -> None:
    store.add(target="lane")
    store.claim_one()
    first = put(store, unique(1, target="lane"))
    assert store.claim() == []
    assert store.job(first.id).stage is Stage.FOLLOWER
    again = put(store, unique(2, "args", "run_at", target="lane", delay_seconds=60.0))
    assert (again.id, again.replaced) == (first.id, True)
    job = store.job(first.id)
    assert (job.stage, job.args) == (Stage.FOLLOWER, '{"n":2}')


def test_a_paused_job_keeps_its_key_until_it_is_taken(store: StoreUnderTest) -> None:
    first = put(store, unique(1))
    store.store.operate(OperatorVerb.PAUSE, [first.id], "ann", None)
    assert put(store, unique(2, "args")).replaced
    assert (store.job(first.id).stage, store.job(first.id).args) == (Stage.PAUSED, '{"n":2}')
    store.store.operate(OperatorVerb.RESUME, [first.id], "ann", None)
    assert put(store, unique(3)).id == first.id
    store.store.operate(OperatorVerb.CANCEL, [first.id], "ann", None)
    assert put(store, unique(4)).created, "free with its end"


def test_a_finished_job_that_is_retried_has_no_waiting_key(store: StoreUnderTest) -> None:
    first = put(store, unique(1))
    assert store.end(store.claim_one(), OutcomeKind.SUCCESS)
    second = put(store, unique(2))
    store.store.operate(OperatorVerb.RETRY, [first.id], "ann", None)
    assert put(store, unique(3)).id == second.id


def test_a_debounced_job_runs_after_the_last_call_with_its_arguments(store: StoreUnderTest) -> None:
    first = put(store, debounce(1))
    for n in (2, 3):
        store.advance(20)
        again = put(store, debounce(n))
        assert (again.id, again.created, again.replaced) == (first.id, False, True)
        assert due_in(store, first.id) == 30
    store.advance(29.9)
    assert store.store.make_ready(10) == 0
    store.advance(0.2)
    assert store.store.make_ready(10) == 1
    assert store.claim_one().args == '{"n":3}'
    assert put(store, debounce(4)).created


def test_a_debounce_is_late_by_at_most_its_limit(store: StoreUnderTest) -> None:
    first = put(store, debounce(1, at_most=45))
    store.advance(20)
    put(store, debounce(2, at_most=45))
    assert due_in(store, first.id) == 25
    store.advance(50)
    put(store, debounce(3, at_most=45))
    assert store.job(first.id).stage is Stage.READY, "it is overdue, and runs at once"
    assert store.claim_one().args == '{"n":3}'


def test_a_throttle_runs_the_first_at_once_and_then_one_in_each_window(
    store: StoreUnderTest,
) -> None:
    first = put(store, throttle(1))
    assert put(store, throttle(2)).id == first.id, "it waits still, and gets the last arguments"
    assert store.claim_one().args == '{"n":2}'
    store.advance(10)
    second = put(store, throttle(3))
    assert second.created
    assert due_in(store, second.id) == 50
    assert put(store, throttle(4)).replaced
    store.advance(50)
    store.store.make_ready(10)
    assert store.claim_one().args == '{"n":4}'
    third = put(store, throttle(5))
    assert due_in(store, third.id) == 60, "the window of the second"
    store.advance(60)
    store.store.make_ready(10)
    store.claim_one()
    store.advance(61)
    assert store.job(put(store, throttle(6)).id).stage is Stage.READY, "a quiet minute is enough"


def test_windows_that_have_ended_are_deleted(store: StoreUnderTest) -> None:
    put(store, throttle(1))
    store.store.apply_retention(30, 100)
    assert store.sql("select count(*) from {s}throttle") == [(1,)]
    assert not store.store.retention_is_due(30)
    store.advance(61)
    assert store.store.retention_is_due(30), "or short workers would never delete them"
    store.store.apply_retention(30, 100)
    assert store.sql("select count(*) from {s}throttle") == [(0,)]


def test_keys_of_other_kinds_and_tasks_are_others(store: StoreUnderTest) -> None:
    waiting = waiting_of("u", Unique("k", until="start"))
    jobs = [unique(), debounce(), throttle(), NewJob(task="u", waiting=waiting)]
    jobs.append(NewJob(task="t", unique_key="k"))
    assert all(each.created for each in store.store.enqueue(jobs))


def test_a_call_with_all_kinds_keeps_their_order(store: StoreUnderTest) -> None:
    jobs = [
        NewJob(task="t", args=b"0"),
        unique(1, "args"),
        unique(2, "args"),
        NewJob(task="t", unique_key="k"),
        debounce(3),
        NewJob(task="t", unique_key="k"),
        throttle(4),
        debounce(5),
        unique(6, "args"),
        unique(7, key="other"),
        NewJob(task="t", args=b"8"),
    ]
    answers = store.store.enqueue(jobs)
    made = [each.created for each in answers]
    assert made == [True, True, False, True, True, False, True, False, False, True, True]
    created = [each.id for each in answers if each.created]
    assert created == sorted(created)
    stored = store.store.read([each.id for each in answers])
    assert stored[answers[1].id].args == '{"n":6}'
    assert stored[answers[4].id].args == '{"n":5}'
    assert [answers[2].id, answers[8].id] == [answers[1].id] * 2


class CountingSession:
    def __init__(self, inner: Session) -> None:
        self._inner = inner
        self.groups: list[StatementGroup] = []

    def execute(self, group: StatementGroup) -> list[Rows]:
        self.groups.append(group)
        return self._inner.execute(group)


def test_many_calls_of_one_key_in_one_batch_make_one_job(store: StoreUnderTest) -> None:
    """In as many transactions as one job."""
    session = CountingSession(store.database.session())
    run(enqueue([unique(0, "args", key="other")]), session)
    needed = len(session.groups)
    answers = run(enqueue([unique(n, "args") for n in range(50)]), session)
    assert len(session.groups) == 2 * needed
    assert {each.id for each in answers} == {answers[0].id}
    assert [each.created for each in answers] == [True] + 49 * [False]
    assert [each.replaced for each in answers] == [False] + 49 * [True]
    assert store.job(answers[0].id).args == '{"n":49}'


def _variants(key: str) -> Iterator[list[NewJob]]:
    """Jobs of one key for one call."""
    many: dict[str, Any] = {"key": key, "tags": ("a",), "meta_json": encode_meta({"v": 1})}
    yield [unique(1, key=key), unique(2, key=key, priority=3)]
    for names in (("args",), ("meta", "tags"), ("priority",), ("args", "run_at")):
        yield [unique(1, *names, key=key), unique(2, *names, **many, priority=2)]
        times: list[dict[str, Any]] = [{}, {"delay_seconds": 60.0}, {"delay_seconds": 30.0}, {}]
        for fields in ({}, {"target": f"lane {key}"}, {"pending": True}):
            yield [unique(n, *names, **many, **time, **fields) for n, time in enumerate(times)]
            yield [unique(n, *names, **many, **time, **fields) for n, time in enumerate(times[:3])]


@pytest.mark.parametrize("is_held", [False, True], ids=["free", "held"])
def test_jobs_of_one_call_end_as_if_each_had_its_own(store: StoreUnderTest, is_held: bool) -> None:
    for number, (jobs, twins) in enumerate(
        zip(_variants("together"), _variants("apart"), strict=True)
    ):
        seen = []
        for group, calls in ((jobs, [jobs]), (twins, [[job] for job in twins])):
            if is_held:
                put(store, msgspec.structs.replace(group[0], args=b'{"n":99}', priority=1))
            answers = [each for call in calls for each in store.store.enqueue(call)]
            assert len({each.id for each in answers}) == 1
            job = store.job(answers[0].id)
            shown = (job.args, job.priority, job.tags, job.meta, job.stage, job.run_at)
            seen.append((shown, [(each.created, each.replaced) for each in answers]))
            store.store.delete([job.id])
        assert seen[0] == seen[1], number


def test_a_deleted_job_frees_its_key(store: StoreUnderTest) -> None:
    first = put(store, unique(1))
    store.store.delete([first.id])
    assert put(store, unique(2)).created


def test_the_time_of_creation_is_that_of_the_job_that_waits(store: StoreUnderTest) -> None:
    first = put(store, debounce(1))
    store.advance(7)
    again = put(store, debounce(2))
    assert again.created_at == first.created_at == store.now() - timedelta(seconds=7)
