"""Records of violations that the checker once passed over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from freehold.lab.checker.checker import check
from freehold.lab.checker.evidence import Evidence, FlowEvidence
from freehold.lab.checker.record import Record
from freehold.model.flow import Counts, Flow, FlowKind, FlowNode, FlowState, OnFailure
from freehold.model.history import Event, EventKind
from freehold.model.job import Job, Report
from freehold.model.policy import Policy
from freehold.model.state import State
from freehold.model.timestamps import micros_of
from tests.model.builders import a_job, at, policy_json


def _micros(seconds: float) -> int:
    return micros_of(at(seconds))


def _event(seconds: float, kind: EventKind, state: State, **more: Any) -> Event:
    fields: dict[str, Any] = dict.fromkeys(Event.__struct_fields__) | {"id": 1, "job_id": 1}
    return Event(**fields | {"at": at(seconds), "kind": kind, "state": state, "attempt": 1} | more)


def _ended(kind: EventKind, state: State, reason: str) -> Event:
    """The end of the lease that a worker got after one second, after five seconds."""
    lease = {"token": 9, "leased_at": at(1), "by": "w1"}
    return _event(5, kind, state, reason=reason, **lease)


def _run(how: str | None) -> Iterator[Record]:
    """The handler of that lease."""
    info = {"owner": "w1", "target": None, "queue": "default", "timeout": None}
    yield Record(_micros(1.1), "w1", "started", job=1, token=9, attempt=1, info=info)
    if how is not None:
        yield Record(_micros(4), "w1", "ended", job=1, token=9, info={"how": how})


def _recovered() -> Record:
    return Record(_micros(5), "w2", "recovered", job=1, token=9)


def _crash() -> Record:
    info = {"kind": "crash", "until": 0, "grave": True}
    return Record(_micros(2), "w1", "fault", info=info)


def _failed_job(**more: Any) -> Job:
    report = Report(State.FAILED, at(5), 1, None, None, "w1", 9, at(1), at(1), 1.0, 4.0)
    return a_job(None, id=1, state=State.FAILED, report=report, attempt=1, max_attempts=1, **more)


def _rules(
    records: Sequence[Record], job: Job, events: Sequence[Event], **more: Any
) -> dict[str, str]:
    found = check(Evidence(records, {1: job}, {1: events}, {}, **more))
    return {each.rule: each.text for each in found}


_LOST = _ended(EventKind.FAILED, State.FAILED, "its worker was lost 1 time")


@pytest.mark.parametrize("reason", ["its worker was lost 1 time", "the process is gone"])
def test_a_lease_is_lost_without_a_fault_whatever_the_reason_says(reason: str) -> None:
    event = _ended(EventKind.FAILED, State.FAILED, reason)
    records = [*_run(None), _recovered()]
    rules = _rules(records, _failed_job(), [event], records_recoveries=True)
    assert rules == {"I4": "lost the lease of w1, which had no fault"}


def test_a_handler_cannot_excuse_the_end_of_its_attempt_by_the_reason() -> None:
    """It returned, and a failure is stored with a text of its own."""
    rules = _rules([_crash(), *_run("returned")], _failed_job(), [_LOST], records_recoveries=True)
    assert rules["I2"] == "its handler ended with returned, but failed is stored"


def test_a_recovery_that_obeys_a_stop_request_loses_a_lease_too() -> None:
    paused = _ended(EventKind.PAUSED, State.PAUSED, "please")
    job = _failed_job()
    rules = _rules([*_run(None), _recovered()], job, [paused], records_recoveries=True)
    assert rules["I4"] == "lost the lease of w1, which had no fault"


def test_the_lease_of_a_worker_with_a_fault_may_be_lost() -> None:
    records = [_crash(), *_run(None), _recovered()]
    assert _rules(records, _failed_job(), [_LOST], records_recoveries=True) == {}


def test_real_processes_record_no_recoveries() -> None:
    """A process that recovers a lease can be killed before it could record that."""
    assert _rules([*_run(None)], _failed_job(), [_LOST]).keys() == {"I4"}


@pytest.mark.parametrize("reason", ["it had not started by noon (start_by)", "too late", None])
def test_a_job_that_has_started_is_canceled_as_late_whatever_the_reason_says(
    reason: str | None,
) -> None:
    canceled = _event(8, EventKind.CANCELED, State.CANCELED, reason=reason)
    events = [_ended(EventKind.RETRIED, State.QUEUED, "an error"), canceled]
    rules = _rules([*_run("error")], a_job(id=1), events)
    assert rules["start_by"] == "was canceled as late after it had started"


def test_a_job_that_an_operator_cancels_is_not_canceled_as_late() -> None:
    """Though the operator gives the same reason."""
    canceled = _event(8, EventKind.CANCELED, State.CANCELED, by="ann", reason="(start_by)")
    assert "start_by" not in _rules([], a_job(id=1), [canceled])


def _workflow() -> Flow:
    fields: dict[str, Any] = dict.fromkeys(Flow.__struct_fields__) | {
        "id": 1,
        "kind": FlowKind.WORKFLOW,
        "name": "w",
        "state": FlowState.OPEN,
        "counts": Counts(2),
        "created_at": at(0),
    }
    return Flow(**fields)


def _node(number: int, job_id: int, *sources: int) -> FlowNode:
    return FlowNode(
        flow=1,
        number=number,
        name=str(number),
        job_id=job_id,
        part=None,
        on_failure=OnFailure.CANCEL,
        state=State.CANCELED,
        open_sources=0,
        bad_sources=1,
        waits=False,
        sources=sources,
    )


@pytest.mark.parametrize("reason", ["its source 2 has failed", "the job before it has failed"])
def test_a_node_is_canceled_without_a_bad_source_whatever_the_reason_says(reason: str) -> None:
    member = policy_json(Policy(flow=1, node=1))
    node, source = a_job(id=1, policy_json=member), a_job(id=2, policy_json=member)
    canceled = _event(8, EventKind.CANCELED, State.CANCELED, reason=reason)
    flow = FlowEvidence(_workflow(), [1, 2], {}, (_node(1, 2), _node(2, 1, 1)))
    found = check(Evidence([], {1: node, 2: source}, {1: [canceled], 2: []}, flows=[flow]))
    assert [each.text for each in found if each.rule == "N12"] == [
        f"was canceled ({reason}), and no source had ended so"
    ]


def test_a_lease_is_lost_after_a_commit_whose_outcome_no_fault_made_unknown() -> None:
    lost = _ended(EventKind.LEASE_LOST, State.QUEUED, "its worker was lost")
    rules = _rules([*_run("unknown"), _recovered()], a_job(id=1), [lost], records_recoveries=True)
    assert rules["I4"] == "lost the lease of w1, which had no fault"


def _queue_verb(call: str, verb: str, seconds: float, **response: Any) -> Iterator[Record]:
    info = {"verb": verb, "queue": "default"}
    yield Record(_micros(seconds), "operator", "requested", call=call, info=info)
    answer = info | response
    yield Record(_micros(seconds + 0.1), "operator", "responded", call=call, info=answer)


_UNKNOWN = {"error": "OutcomeUnknown"}


def _claimed_while_paused(*before: Record) -> bool:
    """A claim after one second, and a pause half a second before it."""
    records = [*before, *_queue_verb("pause", "pause_queue", 0.5), *_run(None)]
    records.sort(key=lambda record: record.at)
    claimed = _ended(EventKind.RETRIED, State.QUEUED, "an error")
    return "pause" in _rules(records, a_job(id=1), [claimed])


def test_a_resume_without_a_known_outcome_does_not_excuse_a_later_pause() -> None:
    assert _claimed_while_paused()
    assert _claimed_while_paused(*_queue_verb("resume", "resume_queue", 0.1, **_UNKNOWN))


def test_a_resume_that_was_executed_late_ends_a_later_pause() -> None:
    resume = [*_queue_verb("resume", "resume_queue", 0.1, **_UNKNOWN)]
    for seconds, is_found in ((0.8, False), (1.2, True)):
        info = {"kind": "arrived_late", "to": "resume_queue"}
        late = Record(_micros(seconds), "operator", "fault", info=info)
        assert _claimed_while_paused(*resume, late) == is_found


def test_a_resume_that_is_under_way_may_end_a_pause() -> None:
    assert not _claimed_while_paused(*_queue_verb("resume", "resume_queue", 0.45, **_UNKNOWN))
