"""The records of real processes: lines in files, read back together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from freehold.lab.checker.checker import check
from freehold.lab.checker.evidence import Evidence
from freehold.lab.checker.record import FileLog, Record, read_logs
from freehold.lab.simulation.run import run_scenario
from freehold.lab.simulation.scenario import QUEUES, Call, JobPlan, Scenario, WorkerPlan
from freehold.model.limit import Limit
from tests.simulation.bugs import BUGS


def test_records_of_many_files_come_back_in_order(tmp_path: Path) -> None:
    late = Record(20, "w2", "started", job=1, token=7, attempt=1, info={"owner": "w2"})
    soon = Record(10, "client", "requested", call="c1", info={"verb": "enqueue", "jobs": []})
    for name, record in (("a", late), ("b", soon)):
        log = FileLog(tmp_path / name)
        log.write(record)
        log.close()
    assert read_logs(tmp_path.iterdir()) == [soon, late]


def test_a_line_without_a_newline_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "cut"
    path.write_bytes(b'{"at":1,"actor":"w","kind":"healed"}\n{"at":2,"ac')
    assert [record.kind for record in read_logs([path])] == ["healed"]


def test_a_job_that_was_acknowledged_and_is_gone_is_lost() -> None:
    records = [
        Record(1, "c", "requested", call="c1", info={"verb": "enqueue", "jobs": [{}]}),
        Record(2, "c", "responded", call="c1", info={"verb": "enqueue", "results": [[5, True]]}),
    ]
    assert [violation.rule for violation in check(Evidence(records, {}, {}, {}))] == ["I1"]


@pytest.mark.requirement("S0.10")
def test_more_live_leases_than_a_limit_allows_are_seen() -> None:
    """With a store that ignores its limits."""
    jobs = tuple(JobPlan(limit_key="bank", runs=((1.0, "return"),)) for _ in range(3))
    worker = WorkerPlan(0.0, "w1", QUEUES, 4, 1.0, knows_newer=True, grace_seconds=1.0)
    call = Call(0.1, 1, jobs, idempotent=False)
    scenario = Scenario(0, (worker,), (call,), (), (), limits=(("bank", Limit(2)),))
    with BUGS["a key's limit is ignored"].plant():
        assert {violation.rule for violation in run_scenario(scenario).violations} == {"S0.10"}
        assert not run_scenario(replace(scenario, limits=(("bank", Limit(3)),))).violations
    assert not run_scenario(scenario).violations
