"""Load in waves: workers start at once and end slowly, and no job is interrupted.

One wave in the short form; twenty, some two minutes for each store, in the long one.
"""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import Any

import pytest

from freehold.model.state import State
from tests.manager.load_app import naps, waits
from tests.manager.service import Service, WorkerCount
from tests.sizes import sized
from tests.worker.fleet import eventually

COOLDOWN_SECONDS = 1.5
WAVES = sized("WAVES", short=1, long=20)


def times_of(lines: list[dict[str, Any]]) -> list[float]:
    return [datetime.fromisoformat(line["at"]).timestamp() for line in lines]


@pytest.mark.requirement("S2.9")
@pytest.mark.either_store
def test_workers_follow_the_load_from_two_to_eight_and_back(service: Service) -> None:
    ids: list[int] = []

    def all_ended() -> bool:
        return service.all_succeeded(ids)

    with WorkerCount(service) as counted:
        service.up()
        service.until_registered(2)
        for wave in range(WAVES):
            gate = service.folder / f"gate-{wave}"
            # Sixteen waiting jobs fill eight workers; the others are short.
            ids += [waits.enqueue(str(gate)).id for _ in range(16)]
            ids += [naps.enqueue(0.05).id for _ in range(20)]
            service.until_workers(8)
            eventually(lambda: sum(worker.running for worker in service.registered()) == 16)
            gate.touch()
            eventually(all_ended)
            service.until_workers(2)
    assert counted.maximum == 8
    service.nothing_was_interrupted(ids)
    downs = times_of(service.logged("scaling down"))
    ups = times_of(service.logged("scaling up"))
    print(f"{WAVES} waves, {len(ids)} jobs, {len(ups)} times up, {len(downs)} times down")
    assert len(downs) >= WAVES
    for before, after in pairwise(sorted(downs + ups)):
        assert after in ups or after - before >= COOLDOWN_SECONDS / 2  # logged late


@pytest.mark.requirement("S2.9")
def test_a_worker_with_a_job_stays_while_idle_ones_end(sqlite_service: Service) -> None:
    service = sqlite_service
    short, long = service.folder / "short", service.folder / "long"
    service.up("--default-count", "1", "--max-count", "4")
    long_job = waits.enqueue(str(long)).id
    eventually(lambda: service.record.starts(long_job))
    ids = [waits.enqueue(str(short)).id for _ in range(7)]
    service.until_workers(4)
    eventually(lambda: all(service.record.starts(job_id) for job_id in ids))
    short.touch()
    (left,) = service.until_workers(1)
    assert service.record.starts(long_job)[0].pid == left
    long.touch()
    eventually(
        lambda: service.app._client.store.read([long_job])[long_job].state is State.SUCCEEDED
    )
    service.nothing_was_interrupted([long_job, *ids])
