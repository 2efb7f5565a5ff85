"""The examples of workflows: a worker is killed in the middle, and another one goes on."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from freehold.model.flow import FlowState
from freehold.model.state import State
from freehold.store.types import JobFilter
from tests.worker.examples import Example, Open
from tests.worker.fleet import TIMEOUT_SECONDS, eventually

pytestmark = [pytest.mark.requirement("N9", "N12"), pytest.mark.either_store]
TICK = datetime(2026, 1, 5, 2, tzinfo=UTC)


def succeeded(example: Example, task: str) -> int:
    found = JobFilter(task=getattr(example.module, task).name, states=frozenset({State.SUCCEEDED}))
    return len(example.module.app.operator.jobs(found).jobs)


def test_a_document_whose_worker_was_killed_repeats_only_the_page_that_ran(example: Open) -> None:
    office = example("workflows", "documents")
    flow = office.module.app.flow(office.module.submit("manual"))
    worker = office.start(SCAN_SECONDS="600")
    office.kill(worker, at=lambda: "page 2" in worker.log and succeeded(office, "read_page") == 3)
    office.start(SCAN_SECONDS="0")
    eventually(lambda: flow.read().state is FlowState.SUCCEEDED)
    assert flow.result("publish") == "Safety first (8 words)"
    assert sorted(office.printed("page")) == ["page 1", "page 2", "page 2", "page 3", "page 4"]
    for line in ("split manual", "index of the text", "summary of the text", "publish it"):
        assert office.printed(line.split()[0]) == [line]


def test_a_nightly_import_whose_worker_was_killed_goes_on(example: Open) -> None:
    """One shop is loaded again. A second start of the same day finds the first."""
    night = example("workflows", "nightly")
    operator = night.module.app.operator
    worker = night.start(LOAD_SECONDS="600").until_ready()
    eventually(operator.schedules)
    assert len(operator.backfill_schedule("nightly", TICK, TICK, by="ann")) == 1
    slow = "load 2026-01-04/berlin"
    night.kill(worker, at=lambda: slow in worker.log and succeeded(night, "load") == 2)
    flow = night.module.start_import("2026-01-04")
    assert not flow.created
    night.start(LOAD_SECONDS="0")
    eventually(lambda: flow.read().state is FlowState.SUCCEEDED)
    assert flow.result("report", TIMEOUT_SECONDS) == "3 shops on 2026-01-04"
    assert sorted(night.printed("load")) == [
        *([slow] * 2),
        "load 2026-01-04/lyon",
        "load 2026-01-04/porto",
    ]
    assert night.printed("prepare") == ["prepare 2026-01-04"]
    assert night.printed("report") == ["report 2026-01-04"]
    assert succeeded(night, "nightly") == 1
