"""The bounded reads behind the findings, the failures and the explanations of a list."""

from __future__ import annotations

from typing import Any

import pytest

from freehold.errors import BadInput
from freehold.model.job import ErrorInfo
from freehold.model.live_jobs import BlockedLane
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.model.state import State
from freehold.model.worker_info import Heartbeat
from freehold.operations import explanations
from freehold.operator import Operator
from freehold.store.statements import Statement, StatementGroup, run
from tests.stores import LEASE_SECONDS, StoreUnderTest


def fail(store: StoreUnderTest, message: str, **fields: Any) -> int:
    job_id = store.add(max_attempts=1, **fields)
    (attempt,) = (each for each in store.claim() if each.job_id == job_id)
    error = ErrorInfo("builtins.ValueError", message, "a traceback")
    store.end(attempt, OutcomeKind.ERROR, error=error)
    return job_id


def test_lanes_are_blocked_by_failed_and_paused_holders_only(store: StoreUnderTest) -> None:
    failed = fail(store, "no", target="a")
    paused, follower = store.add(target="b"), store.add(target="b")
    for job_id in (paused, follower, store.add()):
        store.store.operate(OperatorVerb.PAUSE, [job_id], "ann", "why")
    found = store.store.blocked_lanes()
    assert [(each.target, each.job_id, each.state) for each in found] == [
        ("a", failed, State.FAILED),
        ("b", paused, State.PAUSED),
    ]
    assert found[1] == BlockedLane("b", paused, State.PAUSED, "why")


def test_a_lease_is_overdue_long_after_its_end(store: StoreUnderTest) -> None:
    store.add()
    store.claim()
    store.advance(LEASE_SECONDS + 60.0)
    assert store.store.overdue_leases(60.0) == 0
    store.advance(1.0)
    assert store.store.overdue_leases(60.0) == 1
    assert store.store.overdue_leases(3600.0) == 0


def test_failures_are_grouped_with_those_that_block_their_lanes(store: StoreUnderTest) -> None:
    first = fail(store, "no account 17")
    store.advance(5.0)
    second = fail(store, "no account 18", target="lane")
    other = fail(store, "timeout")
    canceled = store.add()
    store.store.operate(OperatorVerb.CANCEL, [canceled], "ann", None)
    store.add()
    store.end(store.claim_one(), OutcomeKind.SUCCESS)
    failures = Operator(store.store).failures()
    assert [(each.message, each.ids) for each in failures.groups] == [
        ("no account …", (second, first)),
        ("timeout", (other,)),
    ]
    assert failures.looked_at == 4
    assert (failures.groups[0].last_at - failures.groups[0].first_at).total_seconds() == 5.0


def test_no_failures(store: StoreUnderTest) -> None:
    store.add()
    failures = Operator(store.store).failures()
    assert (failures.groups, failures.looked_at) == ((), 0)


def test_findings_of_a_store(store: StoreUnderTest) -> None:
    operator = Operator(store.store)
    assert operator.findings() == []
    job_id = fail(store, "no", target="a")
    store.add(queue="mail")
    workers, lanes = operator.findings()
    assert (workers.check, workers.remedy and workers.remedy.subject) == ("workers", "mail")
    assert (lanes.check, lanes.remedy and lanes.remedy.subject) == ("lanes", str(job_id))


def jobs_of_all_kinds(store: StoreUnderTest) -> list[int]:
    done = store.add()
    store.end(store.claim_one(), OutcomeKind.SUCCESS)
    running = store.add()
    store.claim_one()
    failed = fail(store, "no", target="blocked")
    paused = store.add()
    store.store.operate(OperatorVerb.PAUSE, [paused], "ann", None)
    store.store.pause_queue("closed", "ann", None, None)
    return [
        *(done, running, failed, paused),
        *(store.add(target="blocked") for _ in range(2)),
        *(store.add(queue="closed") for _ in range(2)),
        *(store.add(limit_key="key") for _ in range(2)),
        store.add(delay_seconds=60.0),
        store.add(pending=True),
    ]


def test_the_jobs_of_a_list_are_explained_as_each_alone(store: StoreUnderTest) -> None:
    ids = jobs_of_all_kinds(store)
    fields: dict[str, Any] = {"host": "box", "pid": 1, "concurrency": 1, "version": ""}
    beat = Heartbeat(owner="w", queues=("default",), tasks=("t",), **fields)
    store.store.heartbeat(beat, 30.0)
    operator = Operator(store.store)
    assert operator.explain_many([*ids, 999_999]) == {
        job_id: operator.explain(job_id) for job_id in ids
    }


def test_a_list_is_explained_in_as_many_round_trips_as_one_job(store: StoreUnderTest) -> None:
    ids = [store.add(target=f"lane{number % 5}", limit_key="k") for number in range(50)]
    groups: list[StatementGroup] = []
    session = store.database.session()

    class Counted:
        def execute(self, group: StatementGroup) -> Any:
            groups.append(group)
            return session.execute(group)

    found = run(explanations.why_none_running(ids), Counted())
    assert len(found) == 50
    assert len(groups) <= 12
    executed = [str(each) for group in groups for each in group.statements]
    assert max(executed.count(str(Statement(name, {}))) for name in ("now", "workers")) <= 2
    with pytest.raises(BadInput, match="at most 50"):
        Operator(store.store).explain_many(range(1, 52))


def test_a_preview_of_chosen_jobs_is_what_the_verb_then_does(store: StoreUnderTest) -> None:
    ids = jobs_of_all_kinds(store)
    operator = Operator(store.store)
    before = store.everything()
    for verb in OperatorVerb:
        preview = operator.preview(verb, ids)
        assert [each.id for each in preview.jobs] == ids
        assert preview.counts.jobs == len(ids)
    assert store.everything() == before
    preview = operator.preview("cancel", [*ids, 999_999])
    assert preview.jobs[-1].cause == "there is no such job"
    results = operator.cancel(*ids, by="ann")
    assert [str(each.status) for each in preview.jobs[:-1]] == [
        str(each.status) for each in results
    ]


def test_a_preview_sees_a_unique_key_that_is_taken(store: StoreUnderTest) -> None:
    first = store.add(unique_key="k")
    store.store.operate(OperatorVerb.CANCEL, [first], "ann", None)
    second = store.add(unique_key="k")
    store.store.operate(OperatorVerb.CANCEL, [second], "ann", None)
    preview = Operator(store.store).preview("retry", [first, second])
    assert [each.status for each in preview.jobs] == ["done", "refused"]
    assert preview.counts.refused == {"its unique key is held by another job": 1}


@pytest.mark.parametrize(
    ("verb", "ids", "message"),
    [
        ("drop", [1], "'drop' is no verb for jobs: give one of cancel"),
        ("cancel", [], "0 jobs: give 1 to 1000"),
        ("amend", [1], "amend needs a priority"),
    ],
)
def test_a_preview_of_nothing_is_refused(
    store: StoreUnderTest, verb: str, ids: list[int], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        Operator(store.store).preview(verb, ids)
