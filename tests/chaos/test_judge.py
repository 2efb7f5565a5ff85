"""The judge finds every planted mistake in a run, and none in a run without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from freehold.lab.checker.evidence import Evidence, FlowEvidence
from freehold.lab.checker.record import Record
from freehold.model.flow import (
    Counts,
    Flow,
    FlowKind,
    FlowNode,
    FlowState,
    Moment,
    OnFailure,
)
from freehold.model.job import Job, Report
from freehold.model.state import Stage, State
from freehold.model.step import Step, StepKind
from freehold.store.types import FlowLoad
from tests.chaos.judge import judge
from tests.chaos.judge_flows import nothing_is_left

_BEGIN = datetime(2030, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return _BEGIN + timedelta(seconds=seconds)


def micros(seconds: float) -> int:
    return round(at(seconds).timestamp() * 1_000_000)


def job(job_id: int, call: str, created: float, seconds: float = 2.0, **membership: int) -> Job:
    """It was claimed a second after it was stored, and succeeded. Its token is its id."""
    report = Report(
        state=State.SUCCEEDED,
        finished_at=at(created + 1 + seconds),
        attempts=1,
        result={"token": job_id},
        error=None,
        finished_by="w1",
        token=job_id,
        leased_at=at(created + 1),
        started_at=at(created + 1),
        waited_seconds=1.0,
        ran_seconds=seconds,
    )
    return Job(
        id=job_id,
        task="member",
        queue="default",
        state=State.SUCCEEDED,
        stage=None,
        priority=0,
        args=msgspec.json.encode({"call": call}).decode(),
        attempt=1,
        max_attempts=3,
        lost_attempts=0,
        target=None,
        limit_key=None,
        unique_key=None,
        tags=(),
        timeout_seconds=None,
        policy_json=msgspec.json.encode(membership).decode(),
        created_at=at(created),
        run_at=at(created),
        stop_request=None,
        stop_requested_by=None,
        stop_request_reason=None,
        reason=None,
        lease=None,
        report=report,
    )


def flow(flow_id: int, kind: FlowKind, name: str, total: int, **more: Any) -> Flow:
    fields: dict[str, Any] = dict.fromkeys(Flow.__struct_fields__) | {
        "state": FlowState.SUCCEEDED,
        "counts": Counts(total, total),
        "created_at": at(0),
        "sealed_at": at(0),
        "closed_at": at(90),
    }
    return Flow(**fields | {"id": flow_id, "kind": kind, "name": name} | more)


def node(number: int, sources: tuple[int, ...], **more: Any) -> FlowNode:
    fields: dict[str, Any] = {
        "flow": 2,
        "number": number,
        "name": str(number),
        "job_id": None,
        "part": None,
        "on_failure": OnFailure.CANCEL,
        "state": State.SUCCEEDED,
        "open_sources": 0,
        "bad_sources": 0,
        "waits": False,
        "sources": sources,
    }
    return FlowNode(**fields | more)


_JOBS = (
    job(1, "b.0", 0, flow=1),
    job(2, "b.1", 0, flow=1),
    job(3, "b.end", 5, callback_of=1),
    job(4, "w.0", 0, flow=2, node=1),
    job(5, "w.1", 4, flow=2, node=2),
    job(6, "w.2/0", 4, flow=3),
    job(7, "w.2/1", 4, flow=3),
    job(8, "g", 0, seconds=6.0),
    job(9, "pages of 8/0", 1.5, flow=4),
    job(10, "pages of 8/1", 1.5, flow=4),
)
_FLOWS = (
    FlowEvidence(
        flow(1, FlowKind.BATCH, "b", 2), [1, 2], {Moment.END: 3, Moment.FAILURE: None}, ()
    ),
    FlowEvidence(
        flow(2, FlowKind.WORKFLOW, "w", 3, key="k"),
        [4, 5],
        {},
        (node(1, (), job_id=4), node(2, (1,), job_id=5), node(3, (1,), part=3)),
    ),
    FlowEvidence(flow(3, FlowKind.GROUP, "w.2", 2, parent=2, node=3), [6, 7], {}, ()),
    FlowEvidence(flow(4, FlowKind.GATHER, "pages", 2, parent_job=8), [9, 10], {}, ()),
)


def _runs(jobs: Sequence[Job]) -> list[Record]:
    found = []
    for each in jobs:
        assert each.report is not None
        began, ended = _micros_of(each.created_at), _micros_of(each.report.finished_at)
        started = {"owner": "w1", "target": None, "queue": "default", "timeout": None}
        found += [
            Record(began + 1_000_001, "w1", "started", each.id, each.id, 1, "", started),
            Record(ended - 1, "w1", "ended", each.id, each.id, 1, "", {"how": "returned"}),
        ]
    return found


def _micros_of(time: datetime) -> int:
    return micros((time - _BEGIN).total_seconds())


def got(*values: Any) -> Record:
    return Record(micros(4.9), "w1", "got", 8, 8, 1, "", {"step": "pages", "value": list(values)})


_RESULTS = {"token": 9}, {"token": 10}
_STEP = Step("pages", 1, StepKind.GATHERED, 8, at(4.8))
RIGHT = Evidence(
    records=[*_runs(_JOBS), got(*_RESULTS), Record(micros(80), "world", "healed")],
    jobs={each.id: each for each in _JOBS},
    events={},
    steps={8: [_STEP]},
    flows=_FLOWS,
)


def with_flow(number: int, **changes: Any) -> Evidence:
    flows = list(_FLOWS)
    each = flows[number - 1]
    flows[number - 1] = replace(each, flow=msgspec.structs.replace(each.flow, **changes))
    return replace(RIGHT, flows=flows)


def with_node(number: int, **changes: Any) -> Evidence:
    flows, nodes = list(_FLOWS), list(_FLOWS[1].nodes)
    nodes[number - 1] = msgspec.structs.replace(nodes[number - 1], **changes)
    flows[1] = replace(flows[1], nodes=nodes)
    return replace(RIGHT, flows=flows)


def with_job(changed: Job) -> Evidence:
    jobs = {**RIGHT.jobs, changed.id: changed}
    return replace(RIGHT, jobs=jobs, records=[*_runs([*jobs.values()]), *RIGHT.records[-2:]])


def with_got(*values: Any) -> Evidence:
    return replace(RIGHT, records=[*_runs(_JOBS), got(*values), RIGHT.records[-1]])


def with_callbacks(**released: int | None) -> Evidence:
    callbacks = {Moment(moment): job_id for moment, job_id in released.items()}
    return replace(RIGHT, flows=[replace(_FLOWS[0], callbacks=callbacks), *_FLOWS[1:]])


def waiting(job_id: int) -> Evidence:
    """A node that was never released."""
    lost = msgspec.structs.replace(
        RIGHT.jobs[job_id],
        state=State.PENDING,
        stage=Stage.PENDING,
        report=None,
        waits_for="flow/2",
    )
    jobs = {**RIGHT.jobs, job_id: lost}
    nodes = [*_FLOWS[1].nodes]
    nodes[1] = msgspec.structs.replace(nodes[1], state=None, waits=True)
    flows = [_FLOWS[0], replace(_FLOWS[1], nodes=nodes), *_FLOWS[2:]]
    records = [*_runs([j for j in _JOBS if j.id != job_id]), *RIGHT.records[-2:]]
    return replace(RIGHT, jobs=jobs, flows=flows, records=records)


def test_a_run_without_mistakes_has_no_violation() -> None:
    assert [str(each) for each in judge(RIGHT).violations] == []


_OPEN = {"state": FlowState.OPEN, "closed_at": None}
MISTAKES: dict[str, tuple[Callable[[], Evidence], str]] = {
    "an end is counted twice": (
        lambda: with_flow(1, counts=Counts(2, 3)),
        "flow 1 has counted (2, 3, 0, 0)",
    ),
    "an end of a group is not counted": (
        lambda: with_flow(3, counts=Counts(2, 1), **_OPEN),
        "flow 3 has counted (2, 1, 0, 0)",
    ),
    "a flow stays open": (
        lambda: with_flow(1, **_OPEN),
        "flow 1 is open, and should be succeeded",
    ),
    "a callback is missing": (
        lambda: with_callbacks(end=3, success=None),
        "flow 1 is succeeded, and on_success has not come",
    ),
    "a callback comes twice": (
        lambda: with_job(job(11, "b.end", 6, callback_of=1)),
        "on_end of flow 1 came as jobs [3, 11]",
    ),
    "a callback comes too early": (
        lambda: with_job(job(3, "b.end", 2, callback_of=1)),
        "on_end of flow 1 came while members were open",
    ),
    "a node waits, though its source has ended": (
        lambda: waiting(5),
        "node 2 of flow 2 waits, though its sources have ended: it should run",
    ),
    "a source is not counted": (
        lambda: with_node(3, open_sources=1),
        "node 3 of flow 2 has counted 1 open and 0 bad sources; there are 0 and 0",
    ),
    "a node does not know its end": (
        lambda: with_node(2, state=State.FAILED),
        "node 2 of flow 2 is failed, and its job or group is succeeded",
    ),
    "a node starts too early": (
        lambda: with_job(job(5, "w.1", 1.5, flow=2, node=2)),
        "started before its source, job 4, had ended as it needs",
    ),
    "a gather misses a child": (
        lambda: with_got({"token": 9}),
        "got 1 results for the 2 jobs that it gathered",
    ),
    "a gather has its results in another order": (
        lambda: with_got({"token": 10}, {"token": 9}),
        "got {'token': 10} for job 9, which never ended so",
    ),
    "a gather has an error of a child that succeeded": (
        lambda: with_got({"token": 9}, "JobFailed"),
        "got JobFailed for job 10, which never ended so",
    ),
    "two workflows are open with one key": (
        lambda: replace(
            with_job(job(12, "v.0", 2, flow=5, node=1)),
            flows=[
                *_FLOWS,
                FlowEvidence(
                    flow(5, FlowKind.WORKFLOW, "v", 1, key="k", created_at=at(2)),
                    [12],
                    {},
                    (msgspec.structs.replace(node(1, (), job_id=12), flow=5),),
                ),
            ],
        ),
        "flows 2 and 5 were open with the key k",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_planted_mistake_is_found(mistake: str) -> None:
    plant, text = MISTAKES[mistake]
    found = [str(each) for each in judge(plant()).violations]
    assert any(text in each for each in found), found


def test_ends_that_no_sweep_has_folded_are_found() -> None:
    assert list(nothing_is_left(FlowLoad(open=3, due=0, ends=0))) == []
    assert [str(each) for each in nothing_is_left(FlowLoad(open=0, due=1, ends=2))] == [
        "N11: 2 ends are not folded, 1 flows are due, with nothing to run"
    ]


def exited(code: int, *faults: Record) -> Evidence:
    end = Record(micros(60), "w7", "exited", info={"code": code})
    return replace(RIGHT, records=[*RIGHT.records, *faults, end])


def test_a_stuck_handler_is_excused_by_a_stalled_connection_only() -> None:
    info = {"kind": "blackhole", "grave": True, "until": micros(56)}
    stall = Record(micros(50), "w7", "fault", info=info)
    assert judge(exited(75, stall)).violations == []
    other = msgspec.structs.replace(stall, info={**info, "kind": "hard_stop"})
    for evidence in (exited(75), exited(70, stall), exited(75, other)):
        (found,) = judge(evidence).violations
        assert str(found).startswith("crash: w7 exited with code 7")
