"""Bulk operations: the set is fixed, each job is changed once, and every count is exact."""

from __future__ import annotations

from datetime import timedelta

import pytest

from freehold.errors import IllegalTransition, Refused, RowRefused
from freehold.model.audit import AuditFilter, Author
from freehold.model.bulk import (
    KEY_TAKEN,
    Amendment,
    BulkOperation,
    BulkPreview,
    BulkState,
    BulkVerb,
)
from freehold.model.history import EventKind
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.model.state import Stage, State
from freehold.operator import Operator
from freehold.store.statements import Conflict, StatementGroup, Verb
from freehold.store.types import JobFilter
from freehold.store.verbs import bulk
from tests.broken_rows import FORBIDDEN, poison, steps_refused
from tests.stores import StoreUnderTest

pytestmark = pytest.mark.requirement("N16")

ANN = Author("ann", "cli", "the server is back")
FAILED = JobFilter(states=frozenset({State.FAILED}))


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 2)


def fail(store: StoreUnderTest, count: int = 1, **fields: object) -> list[int]:
    ids = [store.add(**fields) for _ in range(count)]
    for attempt in store.claim(count=count):
        assert store.end(attempt, OutcomeKind.FAIL)
    return ids


def start(
    store: StoreUnderTest,
    verb: BulkVerb = BulkVerb.RETRY,
    filter: JobFilter = FAILED,
    amendment: Amendment | None = None,
) -> int:
    return store.store.start_bulk(verb, filter, amendment, ANN)


def finish(store: StoreUnderTest, operation: int | None = None) -> int:
    steps = 0
    while store.store.carry_out_bulk_step(operation):
        steps += 1
    return steps


def shown(store: StoreUnderTest, operation: int) -> BulkOperation:
    found = store.store.bulk_operation(operation)
    assert found is not None
    return found


def retries(store: StoreUnderTest, job_id: int) -> int:
    events = store.store.events(job_id)
    return sum(event.kind is EventKind.RETRIED_BY_HAND for event in events)


def test_every_job_of_the_set_is_changed_once_oldest_first(store: StoreUnderTest) -> None:
    ids = fail(store, 5)
    operation = start(store)
    assert store.store.sweep_check([]).bulk
    store.store.carry_out_bulk_step()
    assert [store.state(job_id) for job_id in ids] == ["queued"] * 2 + ["failed"] * 3
    assert finish(store) == 2
    assert [retries(store, job_id) for job_id in ids] == [1] * 5
    done = shown(store, operation)
    assert (done.state, done.done, done.left, done.jobs) == (BulkState.DONE, 5, 0, 5)
    assert done.ended_at == store.now()
    assert not store.store.sweep_check([]).bulk
    event = store.store.events(ids[0])[-1]
    assert (event.by, event.reason) == (f"ann (bulk {operation})", "the server is back")


def test_jobs_that_match_later_are_not_touched(store: StoreUnderTest) -> None:
    first = fail(store, 3)
    operation = start(store)
    later = fail(store, 3)
    finish(store)
    assert [store.state(job_id) for job_id in (*first, *later)] == ["queued"] * 3 + ["failed"] * 3
    assert shown(store, operation).jobs == 3


def test_a_job_that_was_retried_by_hand_and_succeeded_is_not_run_again(
    store: StoreUnderTest,
) -> None:
    ids = fail(store, 3)
    operation = start(store)
    store.store.operate(OperatorVerb.RETRY, [ids[1]], "bob", None)
    assert store.end(store.claim_one(), OutcomeKind.SUCCESS)
    finish(store)
    assert [store.state(job_id) for job_id in ids] == ["queued", "succeeded", "queued"]
    done = shown(store, operation)
    assert (done.done, done.changed, done.left) == (2, 1, 0)


def test_a_job_that_changes_between_read_and_write_is_counted_as_changed(
    store: StoreUnderTest,
) -> None:
    ids = [store.add(), store.add()]
    waiting = JobFilter(states=frozenset({State.QUEUED}))
    operation = start(store, BulkVerb.CANCEL, waiting)
    steps = bulk.carry_out_step()
    group = next(steps)
    while not group.writes:
        group = steps.send(store.store.session.execute(group))
    store.claim_one()
    with pytest.raises(StopIteration):
        steps.send(store.store.session.execute(group))
    assert [store.state(job_id) for job_id in ids] == ["assigned", "canceled"]
    done = shown(store, operation)
    assert (done.done, done.changed, done.state) == (1, 1, BulkState.DONE)


def test_a_job_that_becomes_ready_between_read_and_write_is_changed(store: StoreUnderTest) -> None:
    """It is still queued, so it is planned again, with all jobs of its step."""
    ids = [store.add(), store.add(delay_seconds=10.0)]
    operation = start(store, BulkVerb.CANCEL, JobFilter(states=frozenset({State.QUEUED})))
    steps = bulk.carry_out_step()
    slow = _until_write(store, steps)
    store.advance(10.0)
    assert store.store.make_ready(100) == 1
    with pytest.raises(Conflict) as refused:
        store.store.session.execute(slow)
    assert [store.state(job_id) for job_id in ids] == ["queued", "queued"]
    assert drive(store, steps, steps.throw(refused.value))
    assert [store.state(job_id) for job_id in ids] == ["canceled", "canceled"]
    done = shown(store, operation)
    assert (done.done, done.changed, done.state) == (2, 0, BulkState.DONE)


def test_a_step_whose_jobs_keep_changing_leaves_them_alone_at_last(store: StoreUnderTest) -> None:
    """Or the operations behind it would wait for as long as they change."""
    job_id = store.add(delay_seconds=10.0)
    operation = start(store, BulkVerb.CANCEL, JobFilter(states=frozenset({State.QUEUED})))
    steps = bulk.carry_out_step()
    group = _until_write(store, steps)
    for seconds in (0.0, 1000.0, 0.0, 1000.0, 0.0):
        changes = Amendment(run_at=store.now() + timedelta(seconds=seconds))
        store.store.amend([job_id], changes, ANN)
        with pytest.raises(Conflict) as refused:
            store.store.session.execute(group)
        group = steps.throw(refused.value)
        while not group.writes:
            group = steps.send(store.store.session.execute(group))
    changes = Amendment(run_at=store.now() + timedelta(seconds=1000.0))
    store.store.amend([job_id], changes, ANN)
    assert drive(store, steps, group)
    assert store.state(job_id) == "queued"
    done = shown(store, operation)
    assert (done.done, done.changed, done.state) == (0, 1, BulkState.DONE)


def drive(store: StoreUnderTest, steps: Verb[bool], group: StatementGroup) -> bool:
    """Runs a verb from this group to its end. Returns its result."""
    while True:
        try:
            group = steps.send(store.store.session.execute(group))
        except StopIteration as end:
            return bool(end.value)


def test_a_second_worker_cannot_carry_out_the_same_step(store: StoreUnderTest) -> None:
    """The first one commits while the second has read and planned the same chunk; the jobs are
    even failed again when the second one writes."""
    ids = fail(store, 2)
    operation = start(store)
    slow = _until_write(store, bulk.carry_out_step())
    finish(store)
    for attempt in store.claim():
        assert store.end(attempt, OutcomeKind.FAIL)
    with pytest.raises(Conflict):
        store.store.session.execute(slow)
    assert [store.state(job_id) for job_id in ids] == ["failed", "failed"]
    assert [retries(store, job_id) for job_id in ids] == [1, 1]
    assert shown(store, operation).done == 2


def _until_write(store: StoreUnderTest, steps: Verb[bool]) -> StatementGroup:
    group = next(steps)
    while not group.writes:
        group = steps.send(store.store.session.execute(group))
    return group


def test_a_worker_that_dies_before_its_commit_leaves_nothing_of_its_step(
    store: StoreUnderTest,
) -> None:
    ids = fail(store, 2)
    operation = start(store)
    _until_write(store, bulk.carry_out_step())  # never sent
    assert shown(store, operation).left == 2
    finish(store)
    assert [retries(store, job_id) for job_id in ids] == [1, 1]


def test_after_a_stop_no_job_is_changed_until_it_is_resumed(store: StoreUnderTest) -> None:
    ids = fail(store, 4)
    operation = start(store)
    assert store.store.carry_out_bulk_step()
    planned = _until_write(store, bulk.carry_out_step())
    stop = (operation, BulkState.RUNNING, BulkState.STOPPED, "stop", ANN)
    assert store.store.set_bulk_state(*stop)
    assert not store.store.set_bulk_state(*stop)
    with pytest.raises(Conflict):  # a step that was planned before the stop
        store.store.session.execute(planned)
    assert finish(store) == 0
    assert shown(store, operation).left == 2
    assert [store.state(job_id) for job_id in ids] == ["queued"] * 2 + ["failed"] * 2
    resume = (operation, BulkState.STOPPED, BulkState.RUNNING, "resume", ANN)
    assert store.store.set_bulk_state(*resume)
    assert finish(store) == 1
    assert [retries(store, job_id) for job_id in ids] == [1] * 4


def test_the_preview_counts_by_cause_and_the_operation_does_exactly_that(
    store: StoreUnderTest,
) -> None:
    paused, running, asked, done = (store.add(queue="q") for _ in range(4))
    store.store.operate(OperatorVerb.PAUSE, [paused], "ann", None)
    first, _second, third = store.claim(queue="q")
    assert store.end(third, OutcomeKind.SUCCESS)
    assert first.job_id == running
    store.store.operate(OperatorVerb.PAUSE, [asked], "ann", None)
    waiting = store.add(queue="q")
    filter = JobFilter(queue="q")
    ids, preview = store.store.run(bulk.survey(BulkVerb.PAUSE, filter))
    assert ids == [paused, running, asked, done, waiting]
    assert (preview.jobs, preview.done, preview.requested) == (5, {"queued": 1}, 1)
    assert preview.already == 2
    ((cause, count),) = preview.refused.items()
    assert (count, cause.startswith("succeeded")) == (1, True)
    operation = start(store, BulkVerb.PAUSE, filter)
    finish(store)
    result = shown(store, operation)
    assert result.preview == preview
    assert (
        BulkPreview(
            result.jobs, {"queued": result.done}, result.requested, result.already, result.refused
        )
        == preview
    )
    assert [store.job(job_id).stop_request for job_id in (running, asked)] == ["pause", "pause"]


def test_a_unique_key_that_is_taken_refuses_only_its_job(store: StoreUnderTest) -> None:
    (held,) = fail(store, unique_key="held")
    store.add(unique_key="held", queue="other")
    twins = fail(store, unique_key="twin") + fail(store, unique_key="twin")
    (free,) = fail(store)
    _, preview = store.store.run(bulk.survey(BulkVerb.RETRY, FAILED))
    assert (preview.done, preview.refused) == ({"failed": 2}, {KEY_TAKEN: 2})
    operation = start(store)
    finish(store)
    assert store.state(held) == "failed"
    assert sorted(store.state(job_id) for job_id in twins) == ["failed", "queued"]
    assert store.state(free) == "queued"
    result = shown(store, operation)
    assert (result.done, result.refused, result.left) == (2, {KEY_TAKEN: 2}, 0)


def test_lanes_stay_right_when_their_holders_are_deleted(store: StoreUnderTest) -> None:
    blocked = store.add(target="lane")
    assert store.end(store.claim_one(), OutcomeKind.FAIL)
    follower = store.add(target="lane")
    assert store.claim() == []
    operation = start(store, BulkVerb.DELETE)
    finish(store)
    assert store.store.read([blocked]) == {}
    assert shown(store, operation).done == 1
    assert store.claim_one().job_id == follower


def test_a_leased_job_is_never_deleted(store: StoreUnderTest) -> None:
    leased, waiting = store.add(), store.add()
    attempt = store.claim_one()
    operation = start(store, BulkVerb.DELETE, JobFilter(queue="default"))
    finish(store)
    result = shown(store, operation)
    assert (result.done, sum(result.refused.values())) == (1, 1)
    assert store.store.read([waiting]) == {}
    assert store.end(attempt, OutcomeKind.SUCCESS)
    assert store.state(leased) == "succeeded"


def test_a_job_is_deleted_by_hand_unless_a_worker_holds_it(store: StoreUnderTest) -> None:
    people = Operator(store.store)
    done, leased, waiting = store.add(), store.add(), store.add()
    assert store.end(store.claim_one(), OutcomeKind.SUCCESS)
    store.claim_one()
    with pytest.raises(IllegalTransition, match="cancel it, and delete it when it has ended"):
        people.delete(waiting, leased, by="ann")
    assert set(store.store.read([done, leased, waiting])) == {done, leased, waiting}
    people.delete(done, waiting, by="ann", reason="privacy")
    assert set(store.store.read([done, leased, waiting])) == {leased}
    entries = store.store.audit(AuditFilter()).entries
    assert sorted((e.subject, e.verb, e.reason) for e in entries) == sorted(
        (str(job_id), "delete", "privacy") for job_id in (done, waiting)
    )


@pytest.mark.parametrize("seconds", [-60.0, 3600.0])
def test_another_time_moves_a_job_to_its_stage(store: StoreUnderTest, seconds: float) -> None:
    ready, later = store.add(), store.add(delay_seconds=60.0)
    head, follower = store.add(target="lane"), store.add(target="lane")
    store.store.operate(OperatorVerb.PAUSE, [paused := store.add()], "ann", None)
    at = store.now() + timedelta(seconds=seconds)
    start(store, BulkVerb.AMEND, JobFilter(queue="default"), Amendment(run_at=at, priority=7))
    finish(store)
    expected = Stage.SCHEDULED if seconds > 0 else Stage.READY
    assert [store.job(job_id).stage for job_id in (ready, later)] == [expected, expected]
    assert store.job(paused).stage is Stage.PAUSED
    assert {store.job(i).priority for i in (ready, later, head, follower, paused)} == {7}
    assert {store.job(i).run_at for i in (ready, later, head, follower, paused)} == {at}
    claimed = [attempt.job_id for attempt in store.claim()]
    assert claimed == ([] if seconds > 0 else [ready, later, head])


def test_a_holder_that_gets_a_later_time_keeps_its_lane(store: StoreUnderTest) -> None:
    store.add(target="lane")
    second, third = store.add(target="lane"), store.add(target="lane")
    first = store.claim_one()
    assert store.claim() == []
    assert store.end(first, OutcomeKind.SUCCESS)
    assert store.job(second).stage is Stage.LANE_HEAD
    at = store.now() + timedelta(hours=1)
    filter = JobFilter(states=frozenset({State.QUEUED}))
    start(store, BulkVerb.AMEND, filter, Amendment(run_at=at))
    finish(store)
    assert store.job(second).stage is Stage.BACKOFF
    assert store.job(third).stage is Stage.SCHEDULED
    store.advance(3601.0)
    store.store.make_ready(10)
    assert store.claim_one().job_id == second


def test_another_queue_takes_waiting_jobs_along_and_no_others(store: StoreUnderTest) -> None:
    moved, leased = store.add(), store.add(priority=9)
    assert store.claim_one().job_id == leased
    operation = start(store, BulkVerb.AMEND, JobFilter(queue="default"), Amendment(queue="slow"))
    finish(store)
    assert (store.job(moved).queue, store.job(leased).queue) == ("slow", "default")
    assert store.claim_one(queue="slow").job_id == moved
    event = store.store.events(moved)[-1]
    assert (event.kind, event.by) == (EventKind.AMENDED, f"ann (bulk {operation})")
    assert sum(shown(store, operation).refused.values()) == 1


def test_fewer_attempts_than_a_job_has_made_are_refused(store: StoreUnderTest) -> None:
    tried = store.add(max_attempts=5)
    assert store.end(store.claim_one(), OutcomeKind.RETRY_LATER, delay_seconds=60.0)
    fresh, changes = store.add(max_attempts=5), Amendment(max_attempts=1)
    _, preview = store.store.run(bulk.survey(BulkVerb.AMEND, JobFilter(), changes))
    operation = start(store, BulkVerb.AMEND, JobFilter(), changes)
    finish(store)
    assert [store.job(job_id).max_attempts for job_id in (tried, fresh)] == [5, 1]
    assert shown(store, operation).refused == preview.refused
    assert sum(preview.refused.values()) == 1


def test_the_audit_of_an_operation_is_complete(store: StoreUnderTest) -> None:
    fail(store, 3)
    operation = start(store)
    store.store.carry_out_bulk_step()
    store.store.set_bulk_state(operation, BulkState.RUNNING, BulkState.STOPPED, "stop", ANN)
    store.store.set_bulk_state(operation, BulkState.STOPPED, BulkState.RUNNING, "resume", ANN)
    finish(store)
    entries = store.store.audit(AuditFilter()).entries[::-1]
    assert [(e.verb, e.kind, e.subject, e.via) for e in entries] == [
        *((verb, "bulk", str(operation), "cli") for verb in ("start", "stop", "resume")),
        ("finish", "bulk", str(operation), "worker"),
    ]
    assert entries[0].after == {"verb": "retry", "filter": {"states": ["failed"]}, "jobs": 3}
    assert entries[3].after == {
        "done": 3,
        "requested": 0,
        "already": 0,
        "changed": 0,
        "refused": 0,
    }


def test_an_operation_on_no_job_is_done_at_once(store: StoreUnderTest) -> None:
    operation = start(store)
    assert (shown(store, operation).state, finish(store)) == (BulkState.DONE, 0)


def test_operations_are_carried_out_in_their_order(store: StoreUnderTest) -> None:
    (job_id,) = fail(store)
    first = start(store)
    second = start(store, BulkVerb.CANCEL, FAILED)
    finish(store)
    assert store.state(job_id) == "queued"
    assert (shown(store, first).done, shown(store, second).changed) == (1, 1)


def test_a_set_that_is_too_large_is_refused(
    store: StoreUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "JOBS_LIMIT", 2)
    fail(store, 3)
    before = store.everything()
    with pytest.raises(Refused, match="narrow the filter"):
        start(store)
    assert store.everything() == before


def test_old_operations_are_deleted_and_running_ones_are_kept(store: StoreUnderTest) -> None:
    fail(store, 3)
    done = start(store, BulkVerb.RETRY)
    finish(store)
    store.advance(86400.0 * 10)
    running = start(store, BulkVerb.CANCEL, JobFilter(queue="default"))
    store.advance(86400.0 * 10)
    store.store.apply_audit_retention(9.0, 100)
    assert store.store.bulk_operation(done) is None
    assert finish(store, running) == 2


def test_a_job_that_the_database_refuses_is_counted_and_holds_up_no_other(
    store: StoreUnderTest,
) -> None:
    ids = [store.add() for _ in range(4)]
    every = JobFilter(queue="default")
    first = start(store, BulkVerb.PAUSE, every)
    second = start(store, BulkVerb.CANCEL, every)
    poison(store, ids[0], FORBIDDEN)
    assert finish(store, first) == 2
    assert [store.state(job_id) for job_id in ids] == ["queued"] + ["paused"] * 3
    done = shown(store, first)
    assert (done.state, done.done, sum(done.refused.values()), done.left) == ("done", 3, 1, 0)
    finish(store)
    assert shown(store, second).state is BulkState.DONE
    assert not store.store.sweep_check([]).bulk


def test_an_operation_whose_step_is_refused_is_stopped_and_the_next_goes_on(
    store: StoreUnderTest,
) -> None:
    """No job of it is at fault: the row of the step itself cannot be written."""
    ids = fail(store, 2)
    first, second = start(store), start(store)
    with steps_refused(store, first), pytest.raises(RowRefused):
        store.store.carry_out_bulk_step()
    assert shown(store, first).state is BulkState.STOPPED
    entry = store.store.audit(AuditFilter()).entries[0]
    assert (entry.verb, entry.subject, entry.by) == ("stop", str(first), "freehold")
    assert "refused" in str(entry.reason)
    finish(store)
    assert (shown(store, second).done, retries(store, ids[0])) == (2, 1)


def test_an_operation_that_a_newer_index_refuses_is_stopped(store: StoreUnderTest) -> None:
    """As of a schema that a later version has migrated: no plan of this one can succeed."""
    fail(store, 2)
    operation = start(store)
    store.sql("create unique index newer on {s}job (task)")
    try:
        with pytest.raises(RowRefused):
            store.store.carry_out_bulk_step()
    finally:
        store.sql("drop index {s}newer")
    assert shown(store, operation).state is BulkState.STOPPED


def test_a_stopped_operation_is_deleted_with_its_set_once_it_is_old(store: StoreUnderTest) -> None:
    fail(store, 3)
    operation = start(store)
    store.advance(86400.0 * 10)
    assert store.store.carry_out_bulk_step()
    stop = (operation, BulkState.RUNNING, BulkState.STOPPED, "stop", ANN)
    assert store.store.set_bulk_state(*stop)
    store.store.apply_audit_retention(9.0, 100)
    assert shown(store, operation).left == 1, "it was stopped just now, and may be resumed"
    store.advance(86400.0 * 10)
    store.store.apply_audit_retention(9.0, 100)
    assert store.store.bulk_operation(operation) is None
    for table in ("bulk_chunk", "bulk_step"):
        assert store.sql(f"select count(*) from {{s}}{table}") == [(0,)]


def test_a_late_step_of_a_deleted_operation_changes_nothing(store: StoreUnderTest) -> None:
    ids = fail(store, 2)
    start(store)
    late = _until_write(store, bulk.carry_out_step())
    finish(store)
    for attempt in store.claim():
        assert store.end(attempt, OutcomeKind.FAIL)
    store.advance(1.0)
    store.store.apply_audit_retention(0.0, 100)
    with pytest.raises(RowRefused):
        store.store.session.execute(late)
    assert [store.state(job_id) for job_id in ids] == ["failed", "failed"]
