"""Small scenarios that show a planted bug with any seed, where a random one finds it rarely."""

from __future__ import annotations

from collections.abc import Callable

from freehold.lab.simulation.flow_plans import FlowPlan, MemberPlan
from freehold.lab.simulation.link_noise import LinkNoise
from freehold.lab.simulation.scenario import (
    QUEUES,
    Call,
    Fault,
    JobPlan,
    Operation,
    Scenario,
    WorkerPlan,
)


def late_renewals(seed: int) -> Scenario:
    """Workers die with a renewal in flight. Others claim the jobs before it is executed."""
    workers = tuple(
        WorkerPlan(0.0, f"w{n}", QUEUES, 3, 1.0, knows_newer=True, grace_seconds=1.0)
        for n in (1, 2, 3)
    )
    jobs = tuple(JobPlan(max_attempts=9, runs=((5.0, "return"),) * 4) for _ in range(4))
    calls = (Call(0.05, 1, jobs, idempotent=True),)
    faults = tuple(Fault(0.3 + 1.5 * n, "crash_at_renewal", f"w{1 + n % 3}", 0.5) for n in range(4))
    return Scenario(seed, workers, calls, (), faults, LinkNoise(late=0.1))


def misfits_again_and_again(seed: int) -> Scenario:
    """Newer workers, which serve another queue, make a misfit ready; the older one claims it."""
    older = WorkerPlan(0.0, "older", ("default",), 2, 1.0, False, 1.0, misfit_seconds=2.0)
    newer = tuple(
        WorkerPlan(at, f"w{n}", ("mail",), 1, 1.0, knows_newer=True, grace_seconds=1.0)
        for n, at in enumerate((1.0, 1.8, 3.0), 1)
    )
    calls = (Call(0.05, 1, (JobPlan(task="reshaped"),), idempotent=True),)
    return Scenario(seed, (older, *newer), calls, (), ())


def woken_early(seed: int) -> Scenario:
    """An operator pauses and resumes a job that sleeps."""
    worker = WorkerPlan(0.0, "w1", QUEUES, 2, 1.0, knows_newer=True, grace_seconds=1.0)
    job = JobPlan("stepped", parts=(("sleep", "long", 6.0),))
    operations = (Operation(1.0, 1, "pause", 0.0), Operation(2.0, 2, "resume", 0.0))
    return Scenario(seed, (worker,), (Call(0.05, 1, (job,), idempotent=True),), operations, ())


def ends_at_once(seed: int) -> Scenario:
    """The last members of batches end on two workers at the same time, with no fault at all."""
    workers = tuple(
        WorkerPlan(0.0, f"w{n}", QUEUES, 2, 1.0, knows_newer=True, grace_seconds=1.0)
        for n in (1, 2)
    )
    members = (MemberPlan(runs=((0.2, "return"),)),) * 2
    flows = tuple(FlowPlan(0.0, n, members, callbacks=("success",)) for n in range(1, 11))
    return Scenario(seed, workers, (), (), (), flows=flows)


def late_additions(seed: int) -> Scenario:
    """Additions are executed so late that their lease has ended."""
    workers = tuple(
        WorkerPlan(0.0, f"w{n}", QUEUES, 4, 1.0, knows_newer=True, grace_seconds=1.0)
        for n in (1, 2)
    )
    members = (MemberPlan(runs=((0.2, "return"),), adds=1, max_attempts=9),) * 6
    flows = tuple(FlowPlan(0.05, number, members) for number in range(1, 13))
    return Scenario(seed, workers, (), (), (), LinkNoise(late=0.2), flows=flows)


def late_gathers(seed: int) -> Scenario:
    """Workers die with a gather in flight."""
    workers = tuple(
        WorkerPlan(0.0, f"w{n}", QUEUES, 4, 1.0, knows_newer=True, grace_seconds=1.0)
        for n in range(1, 7)
    )
    parts = (("gather", "children", 1.0),)
    jobs = (JobPlan("stepped", max_attempts=9, parts=parts),) * 24
    calls = (Call(0.05, 1, jobs, idempotent=True),)
    faults = tuple(Fault(0.01, "crash_at_addition", f"w{n}", 0.5) for n in range(1, 6))
    return Scenario(seed, workers, calls, (), faults)


def late_suspensions(seed: int) -> Scenario:
    """Children end while the suspension of the job that gathers them is on its way."""
    workers = tuple(
        WorkerPlan(0.0, f"w{n}", QUEUES, 2, 1.0, knows_newer=True, grace_seconds=1.0)
        for n in (1, 2, 3, 4)
    )
    jobs = (JobPlan("stepped", parts=(("gather", "children", 1.0),)),) * 12
    faults = tuple(Fault(0.01, "freeze_at_end", f"w{n}", 1.4) for n in (1, 2, 3))
    return Scenario(seed, workers, (Call(0.05, 1, jobs, idempotent=True),), (), faults)


SHARP: dict[str, Callable[[int], Scenario]] = {
    "a renewal needs no token": late_renewals,
    "a misfit waits anew whenever it is parked": misfits_again_and_again,
    "a sleep that has begun counts as over": woken_early,
    "a fold does not look again": ends_at_once,
    "a gather that closes before the suspension is missed": late_suspensions,
    "a worker that lost its lease adds members": late_additions,
    "a worker that lost its lease gathers": late_gathers,
}
