"""Batches: every way in which a member ends is counted once, and callbacks come once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from freehold.model.audit import AuditFilter, Author
from freehold.model.bulk import BulkVerb
from freehold.model.flow import FlowState
from freehold.model.job import Attempt, NewJob
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.model.state import State
from freehold.store.types import JobFilter
from tests.store_contract.flows import batch_of, counts_of, flow_of, members, settle
from tests.stores import LEASE_SECONDS, StoreUnderTest, key_of

ANN = Author("ann", "test")
OnSuccess, OnFailure, OnEnd = (NewJob(task=name) for name in ("on_success", "on_failure", "on_end"))


def _callbacks(store: StoreUnderTest, flow: int) -> list[str]:
    """The tasks of the callbacks that are jobs by now."""
    settle(store)
    rows = store.sql(f"select job_id from {{s}}flow_callback where flow = {flow}")
    return sorted(store.job(job_id).task for (job_id,) in rows if job_id is not None)


def _batch(store: StoreUnderTest, *jobs: NewJob, sealed: bool = True) -> int:
    return batch_of(store, *jobs, sealed=sealed, success=OnSuccess, failure=OnFailure, end=OnEnd)


@pytest.mark.requirement("N11")
def test_a_batch_whose_members_succeed(store: StoreUnderTest) -> None:
    flow = _batch(store, *members(3))
    assert counts_of(store, flow) == (3, 0, 0, 0)
    first, second, third = store.claim()
    assert store.end(first, OutcomeKind.SUCCESS)
    assert store.end(second, OutcomeKind.SUCCESS)
    assert counts_of(store, flow) == (3, 2, 0, 0)
    assert flow_of(store, flow).state is FlowState.OPEN
    assert _callbacks(store, flow) == []
    assert store.end(third, OutcomeKind.SUCCESS, result=b"1")
    assert counts_of(store, flow) == (3, 3, 0, 0)
    assert flow_of(store, flow).state is FlowState.SUCCEEDED
    assert _callbacks(store, flow) == ["on_end", "on_success"]
    assert sorted(each.task for each in store.claim()) == ["on_end", "on_success"]


def _expire(store: StoreUnderTest, attempt: Attempt) -> None:
    store.advance(LEASE_SECONDS + 1)
    assert store.store.recover(10, 0.5)


def _bulk_cancel(store: StoreUnderTest, attempt: Attempt) -> None:
    assert store.end(attempt, OutcomeKind.GIVE_BACK)
    store.store.start_bulk(BulkVerb.CANCEL, JobFilter(task="t"), None, ANN)
    assert store.store.carry_out_bulk_step()


def _bulk_delete(store: StoreUnderTest, attempt: Attempt) -> None:
    assert store.end(attempt, OutcomeKind.GIVE_BACK)
    store.store.start_bulk(BulkVerb.DELETE, JobFilter(task="t"), None, ANN)
    assert store.store.carry_out_bulk_step()


def _cancel_waiting(store: StoreUnderTest, attempt: Attempt) -> None:
    assert store.end(attempt, OutcomeKind.GIVE_BACK)
    store.store.operate(OperatorVerb.CANCEL, [attempt.job_id], "ann", None)


def _cancel_running(store: StoreUnderTest, attempt: Attempt) -> None:
    store.store.operate(OperatorVerb.CANCEL, [attempt.job_id], "ann", None)
    assert store.end(attempt, OutcomeKind.CANCEL)


def _delete(store: StoreUnderTest, attempt: Attempt) -> None:
    assert store.end(attempt, OutcomeKind.GIVE_BACK)
    assert store.store.delete([attempt.job_id]) == [attempt.job_id]


def _late(store: StoreUnderTest, attempt: Attempt) -> None:
    assert store.end(attempt, OutcomeKind.GIVE_BACK)
    store.advance(3601)
    assert len(store.store.cancel_late(10)) == 1


WAYS: dict[str, tuple[Callable[[StoreUnderTest, Attempt], object], tuple[int, int, int]]] = {
    "failed": (lambda s, a: s.end(a, OutcomeKind.FAIL), (0, 1, 0)),
    "last attempt": (lambda s, a: s.end(a, OutcomeKind.ERROR), (0, 1, 0)),
    "canceled by its handler": (lambda s, a: s.end(a, OutcomeKind.CANCEL), (0, 0, 1)),
    "canceled while it waits": (_cancel_waiting, (0, 0, 1)),
    "canceled while it runs": (_cancel_running, (0, 0, 1)),
    "lease expired": (_expire, (0, 1, 0)),
    "start_by": (_late, (0, 0, 1)),
    "canceled with others": (_bulk_cancel, (0, 0, 1)),
    "deleted with others": (_bulk_delete, (0, 0, 1)),
    "deleted": (_delete, (0, 0, 1)),
}


@pytest.mark.requirement("N11")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("target", [None, "lane"])
def test_each_way_to_end_is_counted(store: StoreUnderTest, way: str, target: str | None) -> None:
    """In a lane a failed job stays live and blocks it: it has ended for its batch."""
    end, counted = WAYS[way]
    flow = _batch(store, *members(1, target=target, max_attempts=1, start_by=3600.0))
    store.add()  # of no batch: never counted
    attempt = next(each for each in store.claim() if each.policy.flow == flow)
    end(store, attempt)
    assert counts_of(store, flow) == (1, *counted)
    assert flow_of(store, flow).state is FlowState.FAILED
    assert _callbacks(store, flow) == ["on_end", "on_failure"]


@pytest.mark.requirement("N11")
def test_ends_that_leave_a_job_unfinished_are_not_counted(store: StoreUnderTest) -> None:
    flow = _batch(store, *members(1, max_attempts=3))
    for kind in (OutcomeKind.ERROR, OutcomeKind.SNOOZE, OutcomeKind.GIVE_BACK, OutcomeKind.DRAIN):
        attempt = store.claim_one()
        assert store.end(attempt, kind, delay_seconds=0.0)
        assert counts_of(store, flow) == (1, 0, 0, 0)
    assert _callbacks(store, flow) == []


@pytest.mark.requirement("N11")
@pytest.mark.parametrize("target", [None, "lane"])
def test_a_member_that_runs_again_opens_its_batch(
    store: StoreUnderTest, target: str | None
) -> None:
    flow = _batch(store, *members(1, target=target))
    attempt = store.claim_one()
    store.end(attempt, OutcomeKind.FAIL)
    assert _callbacks(store, flow) == ["on_end", "on_failure"]
    verb = OperatorVerb.RETRY if target is None else OperatorVerb.RESUME
    store.store.operate(verb, [attempt.job_id], "ann", None)
    assert counts_of(store, flow) == (1, 0, 0, 0)
    assert flow_of(store, flow).state is FlowState.OPEN
    again = next(each for each in store.claim() if each.job_id == attempt.job_id)
    store.end(again, OutcomeKind.SUCCESS)
    assert counts_of(store, flow) == (1, 1, 0, 0)
    assert flow_of(store, flow).state is FlowState.SUCCEEDED
    # Each comes once in the life of a batch: on_end and on_failure do not come again.
    assert _callbacks(store, flow) == ["on_end", "on_failure", "on_success"]


@pytest.mark.requirement("N11")
def test_a_retry_and_its_end_in_one_fold(store: StoreUnderTest) -> None:
    """The member may have run again, added others, and ended before anything is counted."""
    flow = _batch(store, *members(1))
    attempt = store.claim_one()
    store.end(attempt, OutcomeKind.FAIL)
    assert _callbacks(store, flow) == ["on_end", "on_failure"]
    store.store.operate(OperatorVerb.RETRY, [attempt.job_id], "ann", None)
    again = next(each for each in store.claim() if each.job_id == attempt.job_id)
    added = store.store.add_members(flow, members(1), again.owner, key_of(again))
    assert added is not None
    (other,) = store.claim()
    assert other.job_id == added[0]
    store.end(other, OutcomeKind.SUCCESS)
    store.end(again, OutcomeKind.SUCCESS)
    assert counts_of(store, flow) == (2, 2, 0, 0)
    assert flow_of(store, flow).state is FlowState.SUCCEEDED
    assert _callbacks(store, flow) == ["on_end", "on_failure", "on_success"]


@pytest.mark.requirement("N11")
def test_a_failed_member_that_is_resolved_counts_as_canceled(store: StoreUnderTest) -> None:
    flow = _batch(store, *members(1))
    attempt = store.claim_one()
    store.end(attempt, OutcomeKind.FAIL)
    assert counts_of(store, flow) == (1, 0, 1, 0)
    store.store.operate(OperatorVerb.CANCEL, [attempt.job_id], "ann", None)
    assert counts_of(store, flow) == (1, 0, 0, 1)


def test_a_finished_member_that_is_deleted_stays_counted(store: StoreUnderTest) -> None:
    flow = _batch(store, *members(1))
    attempt = store.claim_one()
    store.end(attempt, OutcomeKind.SUCCESS)
    settle(store)
    store.store.delete([attempt.job_id])
    settle(store)
    assert flow_of(store, flow).counts.succeeded == 1
    assert _callbacks(store, flow) == ["on_end", "on_success"]


@pytest.mark.requirement("N11")
def test_an_open_batch_closes_when_it_is_sealed(store: StoreUnderTest) -> None:
    flow = _batch(store, sealed=False)
    assert store.store.add_members(flow, members(2)) is not None
    for attempt in store.claim():
        store.end(attempt, OutcomeKind.SUCCESS)
    assert counts_of(store, flow) == (2, 2, 0, 0)
    assert flow_of(store, flow).state is FlowState.OPEN  # its producer has died, perhaps
    assert flow_of(store, flow).sealed_at is None
    assert store.store.seal_flow(flow)
    assert not store.store.seal_flow(flow)
    assert _callbacks(store, flow) == ["on_end", "on_success"]
    assert store.store.add_members(flow, members(1)) is None
    assert counts_of(store, flow) == (2, 2, 0, 0)


def test_an_empty_batch_succeeds(store: StoreUnderTest) -> None:
    flow = _batch(store)
    assert _callbacks(store, flow) == ["on_end", "on_success"]
    assert flow_of(store, flow).state is FlowState.SUCCEEDED


@pytest.mark.requirement("N11")
def test_a_member_that_runs_can_add_others(store: StoreUnderTest) -> None:
    """Also to a sealed batch: it has not ended, so the batch cannot have."""
    flow = _batch(store, *members(1))
    attempt = store.claim_one()
    added = store.store.add_members(flow, members(2), attempt.owner, key_of(attempt))
    assert added is not None
    assert len(added) == 2
    store.end(attempt, OutcomeKind.SUCCESS)
    assert counts_of(store, flow) == (3, 1, 0, 0)
    assert [each.job_id for each in store.claim()] == added


@pytest.mark.requirement("N11")
def test_an_empty_batch_that_was_canceled_succeeds_when_it_is_retried(
    store: StoreUnderTest,
) -> None:
    """Chaos with seed 24 found it failed, with no member that had."""
    flow = _batch(store, sealed=False)
    store.store.cancel_flow(flow, ANN)
    store.store.seal_flow(flow, ANN)
    assert _callbacks(store, flow) == ["on_end", "on_failure"]
    assert flow_of(store, flow).state is FlowState.CANCELED
    assert store.store.retry_flow(flow, ANN) == 0
    assert _callbacks(store, flow) == ["on_end", "on_failure", "on_success"]
    assert flow_of(store, flow).state is FlowState.SUCCEEDED


@pytest.mark.requirement("N11")
def test_a_canceled_batch_cancels_its_members(store: StoreUnderTest) -> None:
    flow = _batch(store, *members(450), *members(1, target="lane"))
    running, *rest = [*store.claim(count=3)]
    store.end(rest[0], OutcomeKind.SUCCESS)
    store.end(rest[1], OutcomeKind.FAIL)
    assert store.store.cancel_flow(flow, ANN)
    assert not store.store.cancel_flow(flow, ANN)
    assert store.store.add_members(flow, members(1)) is None
    assert counts_of(store, flow) == (451, 1, 1, 448)
    assert flow_of(store, flow).state is FlowState.OPEN
    assert store.job(running.job_id).stop_request == "cancel"
    store.end(running, OutcomeKind.CANCEL)
    assert counts_of(store, flow) == (451, 1, 1, 449)
    assert flow_of(store, flow).state is FlowState.CANCELED
    assert _callbacks(store, flow) == ["on_end", "on_failure"]


@pytest.mark.requirement("N11")
def test_only_the_cancel_that_cancels_a_batch_is_recorded(store: StoreUnderTest) -> None:
    flow = _batch(store, *members(1))
    assert store.store.cancel_flow(flow, ANN)
    assert not store.store.cancel_flow(flow, ANN)
    settle(store)
    assert not store.store.cancel_flow(flow, ANN), "it has ended"
    assert len(store.store.audit(AuditFilter(verb="cancel")).entries) == 1


@pytest.mark.requirement("N11")
def test_a_retried_batch_runs_what_did_not_succeed(store: StoreUnderTest) -> None:
    flow = _batch(store, *members(3), *members(1, target="lane"))
    first, second, third, lane = store.claim()
    store.end(first, OutcomeKind.SUCCESS)
    store.end(second, OutcomeKind.FAIL)
    store.end(third, OutcomeKind.CANCEL)
    store.end(lane, OutcomeKind.FAIL)
    assert counts_of(store, flow) == (4, 1, 2, 1)
    assert store.store.retry_flow(flow, ANN) == 3
    assert counts_of(store, flow) == (4, 1, 0, 0)
    for attempt in store.claim():
        if attempt.policy.flow == flow:
            store.end(attempt, OutcomeKind.SUCCESS)
    assert counts_of(store, flow) == (4, 4, 0, 0)
    assert _callbacks(store, flow) == ["on_end", "on_failure", "on_success"]


def test_members_are_found_among_other_jobs(store: StoreUnderTest) -> None:
    flow = _batch(store, sealed=False)
    ids = []
    for _ in range(5):
        store.add()
        ids += store.store.add_members(flow, members(2)) or []
        _batch(store, *members(1))
    page = store.store.flow_members(flow, limit=100)
    assert [job.id for job in page.jobs] == ids
    assert page.next is None
    assert len(store.sql(f"select * from {{s}}flow_range where flow = {flow}")) == 1
    store.end(store.claim(count=2)[1], OutcomeKind.SUCCESS)
    found = store.store.flow_members(flow, limit=100, states=[State.SUCCEEDED])
    assert [job.id for job in found.jobs] == ids[:1]


def test_old_flows_are_deleted_with_the_history(store: StoreUnderTest) -> None:
    old, open_one = _batch(store, *members(1)), _batch(store, *members(1))
    store.end(store.claim(count=1)[0], OutcomeKind.SUCCESS)
    settle(store)
    store.advance(2 * 86400)
    assert store.store.retention_is_due(1.0)
    while store.store.apply_retention(1.0, 10):
        pass
    assert list(store.store.read_flows([old, open_one])) == [open_one]
    assert store.sql(f"select * from {{s}}flow_callback where flow = {old}") == []
