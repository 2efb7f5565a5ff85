"""What needs a person: each rule, and their order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from freehold.model.bulk import BulkOperation, BulkPreview, BulkState, BulkVerb
from freehold.model.explain import PauseInfo
from freehold.model.findings import FINDINGS_LIMIT, Finding, FindingFacts, Level, findings
from freehold.model.flow import Counts, Flow, FlowKind, RestingFlow
from freehold.model.live_jobs import BlockedLane, JobCounts, QueueInfo
from freehold.model.state import State
from freehold.model.worker_info import LiveWorker, WorkerState

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NO_JOBS = JobCounts(*[0] * len(JobCounts.__struct_fields__))


def counts(**numbers: int) -> JobCounts:
    return JobCounts(**{name: numbers.get(name, 0) for name in JobCounts.__struct_fields__})


def queue(name: str, ready: int = 0, paused_at: datetime | None = None) -> QueueInfo:
    return QueueInfo(name, ready, 0, 0, None, paused_at, None, None, None)


def worker(owner: str = "w", state: WorkerState = WorkerState.WORKING, **fields: Any) -> LiveWorker:
    values: dict[str, Any] = {"queues": ("mail",), "tasks": ("t",), **fields}
    values |= {"host": "box", "pid": 1, "concurrency": 1, "version": ""}
    values |= {"started_at": NOW, "seen_at": NOW, "expires_at": NOW}
    return LiveWorker(owner=owner, state=state, **values)


def operation(number: int, state: BulkState) -> BulkOperation:
    fields: dict[str, Any] = dict.fromkeys(BulkOperation.__struct_fields__)
    fields |= {"id": number, "state": state, "verb": BulkVerb.RETRY, "left": 3}
    return BulkOperation(**{**fields, "preview": BulkPreview(0, {}, 0, 0, {})})


def found(**fields: Any) -> list[Finding]:
    return findings(FindingFacts(**{"now": NOW, "counts": NO_JOBS, "count_bound": 1000, **fields}))


def one(**fields: Any) -> tuple[str, str, str | None]:
    (finding,) = found(**fields)
    command = finding.remedy.command if finding.remedy is not None else None
    return finding.check, finding.text, command


def test_nothing_needs_a_person() -> None:
    assert found(queues=(queue("mail", ready=5),), workers=(worker(),)) == []


def test_a_queue_with_ready_jobs_has_no_worker() -> None:
    other = worker(queues=("other",))
    assert one(queues=(queue("mail", ready=5), queue("empty")), workers=(other,)) == (
        "workers",
        "no worker serves mail, where jobs are ready",
        "freehold worker --app … --queue mail",
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"workers": (worker(queues=("*",)),)},
        {"pause_of_all": PauseInfo(NOW, "ann")},
        {"queues": (queue("mail", ready=5, paused_at=NOW),)},
    ],
)
def test_a_queue_that_is_served_or_paused_needs_no_worker(fields: dict[str, Any]) -> None:
    assert found(**{"queues": (queue("mail", ready=5),), **fields}) == []


def test_a_worker_that_drains_does_not_serve() -> None:
    draining = worker(state=WorkerState.DRAINING)
    assert one(queues=(queue("mail", ready=1),), workers=(draining,))[0] == "workers"


def test_a_failed_job_blocks_its_lane() -> None:
    head = BlockedLane("user:17", 812, State.FAILED, "no")
    assert one(counts=counts(failed=1), blocked=(head,)) == (
        "lanes",
        "1 failed job blocks its lane: user:17 (job 812)",
        "freehold job resume 812",
    )
    many = tuple(BlockedLane(f"l{n}", n, State.FAILED, None) for n in range(1, 8))
    names = ", ".join(f"l{n} (job {n})" for n in range(1, 6))
    assert one(counts=counts(failed=1000), blocked=many) == (
        "lanes",
        f"1,000+ failed jobs block their lanes: {names} and 2 more",
        "freehold jobs state:failed",
    )


def test_a_paused_head_is_no_error() -> None:
    assert found(blocked=(BlockedLane("a", 1, State.PAUSED, None),)) == []


def test_parked_jobs_wait_for_code() -> None:
    assert one(counts=counts(parked=2))[0] == "tasks"


def test_a_lease_that_nothing_recovers() -> None:
    assert one(overdue_leases=2)[:2] == (
        "leases",
        "2 leases expired more than 60 s ago and were not recovered",
    )
    assert "1 lease expired more than 60 s ago and was not" in one(overdue_leases=1)[1]


def test_a_stuck_worker() -> None:
    assert one(workers=(worker("w7", WorkerState.STUCK),))[:2] == (
        "stuck workers",
        "a handler does not stop in w7",
    )


def test_a_pause_that_is_older_than_a_day() -> None:
    old, new = NOW - timedelta(days=2), NOW - timedelta(hours=2)
    assert found(queues=(queue("mail", paused_at=new),)) == []
    both = (queue("mail", paused_at=new), queue("a b", paused_at=old))
    assert one(queues=both) == (
        "pauses",
        "paused: mail, a b; for more than a day",
        "freehold queues resume 'a b'",
    )
    assert one(pause_of_all=PauseInfo(old, "ann"))[2] == "freehold queues resume '*'"


def test_a_stopped_bulk_operation() -> None:
    operations = (operation(7, BulkState.STOPPED), operation(6, BulkState.DONE))
    assert one(bulk=operations) == (
        "bulk operations",
        "bulk operation 7 (retry) is stopped; 3 jobs left",
        "freehold bulk resume 7",
    )


def test_errors_come_before_warnings_and_there_are_at_most_ten() -> None:
    stopped = tuple(operation(number, BulkState.STOPPED) for number in range(20))
    all_of_them = found(bulk=stopped, counts=counts(parked=1), overdue_leases=1)
    assert len(all_of_them) == FINDINGS_LIMIT
    assert [each.check for each in all_of_them[:2]] == ["leases", "tasks"]
    assert {each.level for each in all_of_them[2:]} == {Level.WARNING}


def resting(kind: FlowKind, age: timedelta, held_nodes: int = 0) -> RestingFlow:
    fields: dict[str, Any] = dict.fromkeys(Flow.__struct_fields__)
    fields |= {"id": 5, "kind": kind, "name": "nightly", "counts": Counts(3, 2, 1)}
    return RestingFlow(Flow(**{**fields, "created_at": NOW - age}), held_nodes)


def test_a_batch_without_a_seal_has_probably_lost_its_producer() -> None:
    old = resting(FlowKind.BATCH, timedelta(hours=2))
    assert one(flows=(old,)) == (
        "flows",
        "batch 5 (nightly) is not sealed, and its 3 jobs have ended: its producer may be gone",
        "freehold flow seal 5",
    )
    assert found(flows=(resting(FlowKind.BATCH, timedelta(minutes=5)),)) == []


def test_a_flow_that_stands_still_is_an_error() -> None:
    standing = resting(FlowKind.WORKFLOW, timedelta(0)).flow
    assert one(standing=(standing,)) == (
        "standing flows",
        "workflow 5 (nightly) stands still: what is due for it was not done within 5 minutes",
        "freehold flow show 5",
    )


def test_a_workflow_holds() -> None:
    assert one(flows=(resting(FlowKind.WORKFLOW, timedelta(0), held_nodes=1),), tenant="ours") == (
        "flows",
        "1 node of workflow 5 (nightly) holds, because a source did not succeed",
        "freehold flow retry 5 --tenant ours",
    )
