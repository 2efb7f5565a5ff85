"""Small scenarios that show a planted bug with any seed, where a random one finds it rarely."""

from __future__ import annotations

from collections.abc import Callable

from freehold.lab.simulation.network import LinkNoise
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


SHARP: dict[str, Callable[[int], Scenario]] = {
    "a renewal needs no token": late_renewals,
    "a misfit waits anew whenever it is parked": misfits_again_and_again,
    "a sleep that has begun counts as over": woken_early,
}
