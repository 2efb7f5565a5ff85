"""Many lanes on many workers, with retries, pauses and kills: no overlap, no inversion.

In the long form 200,000 jobs in 1,000 lanes on each store.
"""

from __future__ import annotations

import random
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.sizes import sized
from tests.worker import fleet_app
from tests.worker.fleet import Fleet
from tests.worker.handler_record import Line

LANES = sized("LANES", short=30, long=1000)
JOBS = sized("LANE_JOBS", short=12, long=200)
WORKERS, SLOTS = 4, 16
LEASE = 2.0
#: Generous: a lane that lost its worker waits for the lease, and two cores run everything.
LIMIT_SECONDS = 60.0 + LANES * JOBS * 0.05


@pytest.mark.requirement("S4.3", "P6")
@pytest.mark.either_store
def test_lanes_over_four_workers_never_overlap_and_keep_their_order(fleet: Fleet) -> None:
    lane_of = dict(enqueue())
    for _ in range(WORKERS):
        start(fleet)
    chance = random.Random(7)
    deadline = time.monotonic() + LIMIT_SECONDS
    killed = 0
    while left(fleet) and time.monotonic() < deadline:
        lane = f"lane {chance.randrange(LANES)}"
        fleet.app.operator.pause_lane(lane, "test")
        if killed < 2 and ended(fleet) > (killed + 1) * LANES * JOBS // 4:
            fleet.workers[killed].send(signal.SIGKILL)
            start(fleet)
            killed += 1
        time.sleep(0.1)
        fleet.app.operator.resume_lane(lane)
    assert left(fleet) == 0
    assert killed == 2
    check(fleet.record.lines(), lane_of)


def ended(fleet: Fleet) -> int:
    return len(fleet.record.lines(what="end"))


def start(fleet: Fleet) -> None:
    fleet.start("--queue", "lanes", "--concurrency", str(SLOTS), lease=LEASE)


def enqueue() -> Iterator[tuple[int, str]]:
    """Round by round over all lanes, one in ten of them failing at first."""
    for turn in range(JOBS):
        jobs = [
            fleet_app.step.using(target=f"lane {lane}").prepare((turn + lane) % 10 == 0)
            for lane in range(LANES)
        ]
        for lane, job in enumerate(fleet_app.app.enqueue_many(jobs)):
            yield job.id, f"lane {lane}"


def left(fleet: Fleet) -> int:
    counts = fleet.app.operator.counts()
    return sum(getattr(counts, name) for name in counts.__struct_fields__)


def check(lines: list[Line], lane_of: dict[int, str]) -> None:
    """Check the recorded starts and ends of each lane, in the order of time."""
    by_lane: dict[str, list[Line]] = defaultdict(list)
    for line in sorted(lines, key=lambda line: line.at):
        by_lane[lane_of[line.job]].append(line)
    assert len(by_lane) == LANES
    for lane, steps in by_lane.items():
        starts = [line for line in steps if line.what == "start"]
        ends = {(line.job, line.token): line.at for line in steps if line.what == "end"}
        for before, after in pairwise(starts):
            # A killed attempt has no end, and its lease had to run out first.
            ended = ends.get((before.job, before.token), before.at)
            assert after.at >= ended, f"{lane}: {after} began before {before} ended"
            assert after.token > before.token
        firsts = list(dict.fromkeys(line.job for line in starts))
        assert firsts == sorted(firsts), f"{lane} ran out of order: {firsts}"
        assert len(firsts) == JOBS
