"""Amending and cloning one job."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import assert_type

import pytest

from freehold.errors import BadArguments, BadInput, IllegalTransition, JobNotFound
from freehold.model.audit import AuditFilter, AuditKind
from freehold.model.bulk import Amendment
from freehold.model.outcome import OutcomeKind
from freehold.model.policy import Policy
from freehold.model.state import Stage
from freehold.operations.edits import CloneChanges
from freehold.operator import Operator
from freehold.store.types import JobFilter
from tests.stores import StoreUnderTest


def test_an_amended_job_has_the_new_values_an_event_and_a_record(store: StoreUnderTest) -> None:
    job_id = store.add(queue="a", max_attempts=3)
    changes = Amendment(priority=7, queue="b", max_attempts=1)
    (result,) = Operator(store.store).amend(job_id, changes=changes, by="ann", reason="why")
    assert (result.id, str(result.status), str(result.state)) == (job_id, "done", "queued")
    job = store.job(job_id)
    assert (job.priority, job.queue, job.max_attempts) == (7, "b", 1)
    (event,) = store.store.events(job_id)
    assert (event.kind, event.by, event.reason) == ("amended", "ann", "why")
    (entry,) = Operator(store.store).audit(AuditFilter(kind=AuditKind.JOB)).entries
    assert (entry.verb, entry.subject, entry.by) == ("amend", str(job_id), "ann")
    assert entry.before == {"state": "queued", "priority": 0, "queue": "a", "max_attempts": 3}
    assert entry.after == {"priority": 7, "queue": "b", "max_attempts": 1}
    assert [each.job_id for each in store.claim(queue="b")] == [job_id]
    assert store.claim(queue="a") == []


def test_another_time_moves_a_job_out_of_the_ready_set_and_back(store: StoreUnderTest) -> None:
    operator, job_id = Operator(store.store), store.add()
    later = store.now() + timedelta(hours=1)
    operator.amend(job_id, changes=Amendment(run_at=later), by="ann")
    assert (store.job(job_id).stage, store.claim()) == (Stage.SCHEDULED, [])
    operator.amend(job_id, changes=Amendment(run_at=store.now()), by="ann")
    assert [each.job_id for each in store.claim()] == [job_id]


def test_the_head_of_a_lane_that_waits_longer_keeps_its_lane(store: StoreUnderTest) -> None:
    """Or its follower would overtake it."""
    first, second = store.add(target="lane"), store.add(target="lane")
    store.end(store.claim_one(), OutcomeKind.SNOOZE, delay_seconds=10.0)
    later = store.now() + timedelta(hours=1)
    Operator(store.store).amend(first, changes=Amendment(run_at=later), by="ann")
    store.advance(60.0)
    store.store.make_ready(10)
    assert store.claim() == []
    assert store.job(second).stage is Stage.FOLLOWER


def test_a_job_keeps_an_attempt_when_it_is_amended(store: StoreUnderTest) -> None:
    """Else a worker would claim attempt 2 of 1."""
    job_id, operator = store.add(max_attempts=5), Operator(store.store)
    assert store.end(store.claim_one(), OutcomeKind.RETRY_LATER, delay_seconds=60.0)
    before = store.everything()
    with pytest.raises(IllegalTransition, match="max_attempts=1 none would be left"):
        operator.amend(job_id, changes=Amendment(max_attempts=1), by="ann")
    assert store.everything() == before
    operator.amend(job_id, changes=Amendment(max_attempts=2), by="ann")
    assert store.job(job_id).max_attempts == 2


def test_if_one_job_cannot_be_amended_none_is(store: StoreUnderTest) -> None:
    leased = store.add()
    store.claim()
    waiting, before = store.add(), store.everything()
    operator = Operator(store.store)
    with pytest.raises(IllegalTransition, match="only a waiting job can be amended"):
        operator.amend(waiting, leased, changes=Amendment(priority=1), by="ann")
    with pytest.raises(JobNotFound):
        operator.amend(waiting, 999_999, changes=Amendment(priority=1), by="ann")
    for wrong in (Amendment(), Amendment(priority=40_000), Amendment(max_attempts=0)):
        with pytest.raises(BadInput):
            operator.amend(waiting, changes=wrong, by="ann")
    with pytest.raises(BadInput):
        operator.amend(waiting, changes=Amendment(queue="no spaces"), by="ann")
    after = store.everything()
    assert after == before


def test_a_clone_is_a_new_job_that_names_the_old_one(store: StoreUnderTest) -> None:
    old = store.add(
        args=b'{"n":1}',
        queue="mail",
        priority=3,
        target="lane",
        limit_key="key",
        unique_key="unique",
        max_attempts=4,
        timeout_seconds=9.0,
        tags=("eu", "schedule:books"),
        policy=Policy(on_drain="pause"),
        meta_json='{"batch":7}',
    )
    made = Operator(store.store).clone(old, by="ann", reason="again")
    job, model = store.job(made.id), store.job(old)
    for name in ("task", "args", "queue", "priority", "target", "limit_key", "max_attempts"):
        assert getattr(job, name) == getattr(model, name)
    assert (job.timeout_seconds, job.policy, job.tags) == (9.0, model.policy, ("eu",))
    assert (job.unique_key, job.meta) == (None, {"batch": 7, "cloned_from": old})
    (entry,) = Operator(store.store).audit(AuditFilter(kind=AuditKind.JOB)).entries
    assert (entry.verb, entry.subject, entry.by, entry.reason) == (
        "clone",
        str(old),
        "ann",
        "again",
    )


def test_the_creation_of_a_clone_is_a_datetime_for_type_checkers_too(store: StoreUnderTest) -> None:
    made = Operator(store.store).clone(store.add(), by="ann")
    assert_type(made.created_at, datetime | None)
    assert made.created_at == store.job(made.id).created_at


def test_a_clone_does_not_get_the_mark_of_a_secret_as_its_value(store: StoreUnderTest) -> None:
    old = store.add(args=b'{"n":1,"password":"p4ss"}', policy=Policy(secret_args=("password",)))
    operator, before = Operator(store.store), store.everything()
    for args in (None, '{"n":2}', '{"n":2,"password":"[secret]"}'):
        with pytest.raises(BadInput, match="give other arguments with password"):
            operator.clone(old, CloneChanges(args=args), by="ann")
    assert store.everything() == before
    operator.clone(old, CloneChanges(args='{"n":2,"password":"other"}'), by="ann")
    claimed = store.claim("w1", 2)
    assert [attempt.args for attempt in claimed][1] == '{"n":2,"password":"other"}'


def test_a_clone_of_a_finished_job_with_other_values(store: StoreUnderTest) -> None:
    old = store.add(args=b'{"n":1}')
    store.end(store.claim_one(), OutcomeKind.SUCCESS)
    later = store.now() + timedelta(hours=1)
    changes = CloneChanges(args='{"n": 2}', queue="b", priority=1, run_at=later, max_attempts=2)
    job = store.job(Operator(store.store).clone(old, changes, by="ann").id)
    assert (job.args, job.queue, job.priority, job.max_attempts) == ('{"n":2}', "b", 1, 2)
    assert (job.run_at, job.stage) == (later, Stage.SCHEDULED)
    assert store.state(old) == "succeeded"


def test_a_clone_with_bad_values_is_refused_and_nothing_is_written(store: StoreUnderTest) -> None:
    old = store.add()
    before = store.everything()

    def check(task: str, args: bytes) -> None:
        raise BadArguments(f"task {task} does not accept {args.decode()}")

    operator = Operator(store.store, check=check)
    with pytest.raises(BadArguments, match="task t does not accept"):
        operator.clone(old, CloneChanges(args='{"x":1}'), by="ann")
    plain = Operator(store.store)
    for args in ("[1]", "{", '{"a": NaN}'):
        with pytest.raises(BadInput):
            plain.clone(old, CloneChanges(args=args), by="ann")
    with pytest.raises(BadInput):
        plain.clone(old, CloneChanges(queue="no spaces"), by="ann")
    with pytest.raises(JobNotFound):
        plain.clone(999_999, by="ann")
    after = store.everything()
    assert after == before


def test_a_job_gets_no_time_at_which_it_would_be_canceled(store: StoreUnderTest) -> None:
    operator, end = Operator(store.store), store.now() + timedelta(hours=1)
    late, free = store.add(start_by=end), store.add()
    before, changes = store.everything(), Amendment(run_at=end)
    with pytest.raises(IllegalTransition, match="give a run_at before its start_by"):
        operator.amend(free, late, changes=changes, by="ann")
    (one, other) = operator.preview("amend", [late, free], changes).jobs
    assert (one.status, other.status) == ("refused", "done")
    counts = operator.bulk.preview("amend", JobFilter(task="t"), changes)
    assert sum(counts.refused.values()) == 1
    after = store.everything()
    assert after == before
    done = operator.bulk.start("amend", JobFilter(task="t"), by="ann", changes=changes)
    assert (done.done, sum(done.refused.values())) == (1, 1)
    assert store.job(late).run_at < end
    operator.amend(late, changes=Amendment(run_at=end - timedelta(seconds=1)), by="ann")
    assert store.job(late).stage is Stage.SCHEDULED
