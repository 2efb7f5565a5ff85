"""The tests' own tidiness: a killed test leaves no worker behind."""

from __future__ import annotations

from tests.worker import fleet_app
from tests.worker.fleet import Fleet, eventually


def test_a_worker_ends_with_the_test_that_started_it(sqlite_fleet: Fleet) -> None:
    worker = sqlite_fleet.start()
    sqlite_fleet.started(fleet_app.apart.enqueue(60.0).id)
    worker.close_lifeline()
    eventually(lambda: not worker.group())
