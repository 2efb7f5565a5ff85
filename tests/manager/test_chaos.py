"""Managers and workers killed with -9 at random, under load.

Three times in the short form; a hundred times, some six minutes for each store, in the long one.
"""

from __future__ import annotations

import signal

import pytest

from tests.manager.chaos import Chaos
from tests.manager.service import Service
from tests.sizes import sized
from tests.worker.fleet import eventually

KILLS = sized("KILLS", short=3, long=100)
MAX_WORKERS = 4


@pytest.mark.requirement("S2.9", "S2.11", "S0.2")
def test_the_number_of_workers_is_bounded_and_no_worker_or_job_is_lost(service: Service) -> None:
    chaos = Chaos(service, 5, "--default-count", "2", "--max-count", str(MAX_WORKERS))
    found = chaos.run(KILLS)
    # Workers killed right after their start cause a restart backoff of up to 30 s.
    eventually(lambda: service.all_succeeded(found.ids), seconds=200.0)
    chaos.every_second_start_has_a_cause()
    print(
        f"{found.managers_killed} managers and {found.workers_killed} workers killed; "
        f"at most {found.max_workers} of {MAX_WORKERS} workers in {found.checks} checks; "
        f"{found.adoptions} times all of them were adopted; "
        f"{len(found.ids)} jobs, {found.lost_leases} leases lost, no job"
    )
    chaos.last.send(signal.SIGTERM)
    assert chaos.last.ended() == 0
    assert service.worker_pids() == []
    assert found.managers_killed + found.workers_killed == KILLS
    assert found.managers_killed
    assert found.max_workers <= MAX_WORKERS
