"""Load in waves: workers come at once, go slowly, and nobody's job is interrupted by it.

One wave in the short form; twenty, some two minutes for each store, in the long one.
"""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from freehold.model.state import State
from tests.manager.load_app import naps, waits
from tests.manager.service import Counting, Service
from tests.sizes import sized
from tests.worker.fleet import eventually

COOLDOWN_SECONDS = 1.5
WAVES = sized("WAVES", short=1, long=20)


def moments(lines: list[dict[str, Any]]) -> list[float]:
    return [datetime.fromisoformat(line["at"]).timestamp() for line in lines]


@pytest.mark.requirement("S2.9")
def test_workers_follow_the_load_from_two_to_eight_and_back(service: Service) -> None:
    ids: list[int] = []

    def all_ended() -> bool:
        return service.all_succeeded(ids)

    with Counting(service) as counted:
        service.up()
        service.until_registered(2)
        for wave in range(WAVES):
            gate = service.folder / f"gate-{wave}"
            # Sixteen that wait fill eight workers; what runs in between is over in a moment.
            ids += [waits.enqueue(str(gate)).id for _ in range(16)]
            ids += [naps.enqueue(0.05).id for _ in range(20)]
            service.until_workers(8)
            eventually(lambda: sum(worker.running for worker in service.registered()) == 16)
            gate.touch()
            eventually(all_ended)
            service.until_workers(2)
    assert counted.most == 8
    service.nothing_was_interrupted(ids)
    downs, ups = moments(service.logged("are let go")), moments(service.logged("are ready,"))
    print(f"{WAVES} waves, {len(ids)} jobs, {len(ups)} times up, {len(downs)} times down")
    assert len(downs) >= WAVES
    for before, after in pairwise(sorted(downs + ups)):
        assert after in ups or after - before >= COOLDOWN_SECONDS / 2  # when it was logged


@pytest.mark.requirement("S2.9")
def test_a_worker_with_a_job_stays_while_the_idle_ones_go(sqlite_service: Service) -> None:
    service = sqlite_service
    short, long = service.folder / "short", service.folder / "long"
    service.up("--workers", "1", "--max-workers", "4")
    held = waits.enqueue(str(long)).id
    eventually(lambda: service.record.starts(held))
    ids = [waits.enqueue(str(short)).id for _ in range(7)]
    service.until_workers(4)
    eventually(lambda: all(service.record.starts(job_id) for job_id in ids))
    short.touch()
    (left,) = service.until_workers(1)
    assert service.record.starts(held)[0].pid == left
    long.touch()
    eventually(lambda: service.app.client.store.read([held])[held].state is State.SUCCEEDED)
    service.nothing_was_interrupted([held, *ids])
