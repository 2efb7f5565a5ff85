"""A random scenario from a seed: enqueue calls, operations, workers and faults, with their times.

A scenario is flat: each part has its own time and can be left out without breaking the others.
That is how a failing scenario is shrunk.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TypeAlias

from freehold.lab.simulation.everyday_plans import (
    BulkPlan,
    SchedulePlan,
    bulk_plans,
    keyed_calls,
    schedule_plans,
    start_by,
)
from freehold.lab.simulation.flow_plans import (
    FlowAction,
    FlowPlan,
    flow_actions,
    flow_plans,
    gathering_parts,
)
from freehold.lab.simulation.link_noise import NO_NOISE, LinkNoise, random_noise
from freehold.lab.simulation.step_plans import Part, SignalPlan, jobs_with_parts, signal_plans
from freehold.lab.simulation.tenant_plans import (
    TenantFault,
    TenantPlan,
    tenant_fault_plans,
    tenant_plans,
)
from freehold.model.limit import ALL_QUEUES, Limit, Rate
from freehold.model.waiting import WaitingOption

QUEUES = ("default", "mail")
LANES = ("lane-a", "lane-b", "lane-c")
UNIQUE_KEYS = ("u1", "u2", "u3")
LIMIT_KEYS = ("bank", "bank", "api:1", "api:2")
_TIGHT = (Limit(1), Limit(rate=Rate(2, 1.0)), Limit(2, Rate(4, 2.0)))
_WIDE = (Limit(1), Limit(2), Limit(3), Limit(rate=Rate(5, 1.0)))
#: Each task has another policy; see `tasks`.
TASKS = ("plain", "plain", "plain", "strict", "kept", "skipping", "fenced", "newer")
VERBS = ("cancel", "cancel", "pause", "resume", "resume", "retry", "submit")
#: How runs end.
_ENDS = (
    *("return", "return", "return", "error", "error", "give_up"),
    *("fail", "later", "snooze", "snooze", "pause", "cancel"),
)
#: Faults of workers.
WORKER_FAULTS = (
    "crash",
    "crash_at_end",
    "crash_at_end",
    "crash_at_claim",
    "crash_at_renewal",
    "freeze",
    "freeze_at_end",
    "freeze_at_end",
    "cut",
    "hang",
    "drain",
    "hurry",
)
#: Stand in for the worker of a fault where a manager chooses the names.
OLDEST = "oldest"
BY_AGE = (OLDEST, "newest")
#: Every fifth scenario has tenants: these remainders of the seed by twenty.
_TENANT_SEEDS = (6, 11, 13, 16)
#: Every tenth has schedules, and some with tenants have, too.
_SCHEDULE_SEEDS = (3, 18)
_TENANT_SCHEDULE_SEEDS = (16,)
#: These have times to start by, keys until the start, and bulk operations.
_OPTION_SEEDS = (12, 15)
#: And these are in the middle of a deploy: older workers cannot decode the arguments of some jobs.
_DEPLOY_SEEDS = (9, 13, 19)
#: One in ten has steps and signals: these remainders of the seed by sixty.
_STEP_SEEDS = (18, 30, 38, 53, 54, 58)
#: And seven in sixty have flows; the last of them have tenants, too.
_FLOW_SEEDS = (5, 17, 24, 37, 45, 50, 51)
#: Faults happen within this time; afterwards there are none.
HORIZON_SECONDS = 8.0
LEASE_SECONDS = 2.0

#: One run of a job: how long it takes and how it ends.
PlannedRun: TypeAlias = tuple[float, str]


@dataclass(frozen=True, slots=True)
class JobPlan:
    task: str = "plain"
    queue: str = "default"
    priority: int = 0
    target: str | None = None
    unique_key: str | None = None
    limit_key: str | None = None
    delay: float | None = None
    timeout: float | None = None
    max_attempts: int = 3
    pending: bool = False
    start_by: float | None = None
    waiting: WaitingOption | None = None
    #: The first runs; further ones succeed at once.
    runs: tuple[PlannedRun, ...] = ()
    #: Of the task with steps: what its handler does.
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Call:
    """A client's enqueue of some jobs; with a key it is repeated until its outcome is known."""

    at: float
    number: int
    jobs: tuple[JobPlan, ...]
    idempotent: bool
    repeats: int = 1


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator's action on a job, or on a queue. ``share`` selects among the existing jobs; with
    ``at_end`` it is the next job with an ending in flight."""

    at: float
    number: int
    verb: str
    share: float
    queue: str = ""
    at_end: bool = False


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    at: float
    name: str
    queues: tuple[str, ...]
    concurrency: int
    rate: float
    knows_newer: bool
    grace_seconds: float
    without_notifications: bool = False
    misfit_seconds: float = 3600.0
    #: Starts only after this worker has ended.
    replaces: str | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a worker: crash, freeze, cut, hang, drain, hurry."""

    at: float
    kind: str
    worker: str
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ManagerPlan:
    """A manager that starts the workers. ``crashes``: when it is killed, and for how long there is
    none."""

    default_count: int
    max_count: int
    concurrency: int
    crashes: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Scenario:
    seed: int
    workers: tuple[WorkerPlan, ...]
    calls: tuple[Call, ...]
    operations: tuple[Operation, ...]
    faults: tuple[Fault, ...]
    noise: LinkNoise = NO_NOISE
    #: By limit key or class of limit keys.
    limits: tuple[tuple[str, Limit], ...] = ()
    queue_limits: tuple[tuple[str, Limit], ...] = ()
    manager: ManagerPlan | None = None
    tenants: tuple[TenantPlan, ...] = ()
    tenant_faults: tuple[TenantFault, ...] = ()
    schedules: tuple[SchedulePlan, ...] = ()
    bulks: tuple[BulkPlan, ...] = ()
    signals: tuple[SignalPlan, ...] = ()
    flows: tuple[FlowPlan, ...] = ()
    flow_actions: tuple[FlowAction, ...] = ()


def random_scenario(seed: int) -> Scenario:
    chance = random.Random(f"program/{seed}")
    workers = tuple(
        _worker(chance, number) for number in range(1, chance.choice((1, 1, 2, 2, 3)) + 1)
    )
    # The first worker serves every queue and knows every task, so that every job can end.
    workers = (replace(workers[0], queues=(ALL_QUEUES,), knows_newer=True, at=0.0), *workers[1:])
    calls = tuple(_call(chance, number) for number in range(1, chance.randint(8, 18) + 1))
    operations = tuple(_operation(chance, number) for number in range(1, chance.randint(3, 12)))
    operations += tuple(_interruption(chance, len(operations) + n) for n in (1, 2))
    faults = tuple(_fault(chance, workers) for _ in range(chance.randint(0, 5)))
    faults += tuple(_critical_fault(chance, workers) for _ in range(2))
    workers += tuple(_replacement(workers, fault, n) for n, fault in enumerate(faults))
    noise = random_noise(chance)
    if noise == NO_NOISE:
        faults += tuple(_refusal(chance, workers) for _ in range(4))
    scenario = Scenario(seed, workers, calls, operations, faults, noise)
    if seed % 20 in _DEPLOY_SEEDS:
        scenario = _with_deploy(scenario)
    if seed % 20 in _OPTION_SEEDS:
        scenario = _with_options(scenario)
    if seed % 60 in _STEP_SEEDS:
        scenario = _with_steps(scenario)
    if seed % 60 in _FLOW_SEEDS:
        scenario = _with_flows(scenario)
    if seed % 20 in _TENANT_SCHEDULE_SEEDS:
        scenario = _with_schedules(scenario)
    if seed % 20 in _TENANT_SEEDS:
        return _with_tenants(scenario)
    if seed % 20 in _SCHEDULE_SEEDS:
        scenario = _with_schedules(scenario)
    if seed % 6 == 2:
        return _with_manager(scenario)
    return _with_limits(scenario) if seed % 3 == 1 else scenario


def _with_deploy(scenario: Scenario) -> Scenario:
    """Older workers run beside the others; the newest may start later. Some jobs wait as misfits
    for a worker whose code fits, or until their wait is over."""
    chance = random.Random(f"deploy/{scenario.seed}")
    misfit_seconds = chance.choice((0.5, 2.0, 3600.0))
    newest, *others = scenario.workers
    older = [
        replace(newest, name=name, knows_newer=False, concurrency=4)
        for name in ("older1", "older2")
    ]
    newest = replace(newest, at=chance.choice((0.0, 3.0, 6.0)))
    workers = tuple(
        replace(worker, misfit_seconds=misfit_seconds) for worker in (*older, newest, *others)
    )
    calls = tuple(
        replace(call, jobs=tuple(_maybe_reshaped(chance, job) for job in call.jobs))
        for call in scenario.calls
    )
    return replace(scenario, workers=workers, calls=calls)


def _maybe_reshaped(chance: random.Random, job: JobPlan) -> JobPlan:
    """Some become due when all other jobs have ended, and their tenant sleeps."""
    if chance.random() >= 0.4:
        return job
    late = round(chance.uniform(6.0, 20.0), 3) if chance.random() < 0.3 else job.delay
    return replace(job, task="reshaped", delay=late)


def _with_schedules(scenario: Scenario) -> Scenario:
    chance = random.Random(f"schedules/{scenario.seed}")
    return replace(scenario, schedules=schedule_plans(chance, HORIZON_SECONDS))


def _with_steps(scenario: Scenario) -> Scenario:
    """More jobs, whose handlers have steps, sleep and wait for signals."""
    chance = random.Random(f"steps/{scenario.seed}")
    calls = list(scenario.calls)
    for at, parts, runs in jobs_with_parts(chance, HORIZON_SECONDS):
        lane = chance.choice((None, None, *LANES))
        job = JobPlan("stepped", target=lane, max_attempts=9, runs=runs, parts=parts)
        calls.append(Call(at, len(calls) + 1, (job,), idempotent=True))
    faults = tuple(_step_fault(chance, scenario.workers) for _ in range(3))
    return replace(
        scenario,
        calls=tuple(calls),
        faults=scenario.faults + faults,
        signals=signal_plans(chance, HORIZON_SECONDS),
    )


def _with_flows(scenario: Scenario) -> Scenario:
    """Flows beside the other jobs, and workers that die when they count the ends."""
    chance = random.Random(f"flows/{scenario.seed}")
    faults = tuple(
        replace(_fault(chance, scenario.workers), kind=kind)
        for kind in ("crash_at_fold", "crash_at_addition")
    )
    calls = list(scenario.calls)
    for _ in range(3):
        job = JobPlan("stepped", max_attempts=9, parts=gathering_parts(chance))
        calls.append(Call(_time(chance) / 2, len(calls) + 1, (job,), idempotent=True))
    return replace(
        scenario,
        calls=tuple(calls),
        faults=scenario.faults + faults,
        flows=flow_plans(chance, HORIZON_SECONDS, LANES),
        flow_actions=flow_actions(chance, HORIZON_SECONDS),
    )


def _with_options(scenario: Scenario) -> Scenario:
    """Times to start by, keys until the start, and bulk operations."""
    chance = random.Random(f"options/{scenario.seed}")
    calls = [
        replace(call, jobs=tuple(replace(job, start_by=start_by(chance)) for job in call.jobs))
        for call in scenario.calls
    ]
    for at, key in keyed_calls(chance, HORIZON_SECONDS):
        runs = (_run(chance),)
        calls.append(Call(at, len(calls) + 1, (JobPlan(waiting=key, runs=runs),), idempotent=False))
    return replace(scenario, calls=tuple(calls), bulks=bulk_plans(chance, HORIZON_SECONDS))


def _with_manager(scenario: Scenario) -> Scenario:
    """A manager decides the number of workers; faults hit the oldest or newest of them."""
    chance = random.Random(f"manager/{scenario.seed}")
    default_count = chance.choice((1, 1, 2))
    plan = ManagerPlan(
        default_count,
        max_count=default_count + chance.choice((0, 1, 2)),
        concurrency=chance.choice((1, 2, 4)),
        crashes=tuple((_time(chance), chance.choice((0.1, 1.0, 4.0))) for _ in range(2)),
    )
    faults = tuple(replace(fault, worker=chance.choice(BY_AGE)) for fault in scenario.faults)
    return replace(scenario, workers=(), faults=faults, manager=plan)


def _with_tenants(scenario: Scenario) -> Scenario:
    """The same calls, dealt out to tenants, with the same limits for each."""
    chance = random.Random(f"tenants/{scenario.seed}")
    tenants = tenant_plans(chance)
    tenant_faults = tenant_fault_plans(chance, tenants, HORIZON_SECONDS)
    scenario = _with_limits(scenario) if scenario.seed % 3 == 1 else scenario
    return replace(scenario, tenants=tenants, tenant_faults=tenant_faults)


def _with_limits(scenario: Scenario) -> Scenario:
    """Adds limits on keys and queues, some so tight that jobs have to wait for each other."""
    chance = random.Random(f"limits/{scenario.seed}")
    limits = (("bank", Limit(chance.choice((1, 2)))), ("api:*", chance.choice(_TIGHT)))
    queue = chance.choice((*QUEUES, ALL_QUEUES))
    queue_limits = ((queue, chance.choice(_WIDE)),) if chance.random() < 0.6 else ()
    calls = tuple(
        replace(call, jobs=tuple(_with_limit_key(chance, job) for job in call.jobs))
        for call in scenario.calls
    )
    return replace(scenario, calls=calls, limits=limits, queue_limits=queue_limits)


def _with_limit_key(chance: random.Random, job: JobPlan) -> JobPlan:
    key = chance.choice(LIMIT_KEYS) if chance.random() < 0.5 else None
    return replace(job, limit_key=key)


def _replacement(workers: tuple[WorkerPlan, ...], fault: Fault, number: int) -> WorkerPlan:
    """A worker that starts after the one with the fault has ended, as a supervisor would do."""
    gone = next(worker for worker in workers if worker.name == fault.worker)
    return replace(gone, at=fault.at + 1.0, name=f"{gone.name}-{number + 1}", replaces=gone.name)


def _time(chance: random.Random) -> float:
    return round(chance.uniform(0.0, HORIZON_SECONDS), 3)


def _worker(chance: random.Random, number: int) -> WorkerPlan:
    return WorkerPlan(
        at=0.0 if number < 3 else _time(chance),
        name=f"w{number}",
        queues=tuple(chance.sample(QUEUES, chance.randint(1, 2))),
        concurrency=chance.choice((1, 2, 2, 4)),
        rate=round(chance.uniform(0.98, 1.02), 4) if chance.random() < 0.5 else 1.0,
        knows_newer=chance.random() < 0.6,
        grace_seconds=chance.choice((0.0, 0.5, 3.0)),
        without_notifications=chance.random() < 0.2,
    )


def _call(chance: random.Random, number: int) -> Call:
    at = _time(chance) if chance.random() < 0.6 else round(chance.uniform(0.0, 2.0), 3)
    count = chance.choice((1, 1, 1, 2, 4))
    jobs = tuple(_job(chance) for _ in range(count))
    return Call(at, number, jobs, chance.random() < 0.5, chance.choice((1, 1, 2)))


def _job(chance: random.Random) -> JobPlan:
    has_lane = chance.random() < 0.45
    return JobPlan(
        task=chance.choice(TASKS),
        queue=chance.choice(QUEUES),
        priority=chance.choice((0, 0, 0, 5, -5)),
        target=chance.choice(LANES) if has_lane else None,
        unique_key=chance.choice(UNIQUE_KEYS) if chance.random() < 0.2 else None,
        delay=round(chance.uniform(0.2, 5.0), 3) if chance.random() < 0.2 else None,
        timeout=chance.choice((0.7, 1.5)) if chance.random() < 0.3 else None,
        max_attempts=chance.choice((1, 2, 3, 3, 5)),
        pending=chance.random() < 0.05,
        runs=tuple(_run(chance) for _ in range(chance.choice((0, 1, 1, 2, 3, 4)))),
    )


def _run(chance: random.Random) -> PlannedRun:
    seconds = round(
        chance.choice((0.0, 0.01, 0.1, 0.5, 1.2, 2.0, 3.0)) * chance.uniform(0.8, 1.2), 3
    )
    how = chance.choice(_ENDS)
    return seconds, how


def _operation(chance: random.Random, number: int) -> Operation:
    at, share = _time(chance), chance.random()
    if chance.random() < 0.2:
        verb = chance.choice(("pause_queue", "resume_queue"))
        return Operation(at, number, verb, share, chance.choice(QUEUES))
    return Operation(at, number, chance.choice(VERBS), share)


def _interruption(chance: random.Random, number: int) -> Operation:
    verb = chance.choice(("cancel", "pause"))
    return Operation(_time(chance), number, verb, 0.0, at_end=True)


def _fault(chance: random.Random, workers: tuple[WorkerPlan, ...]) -> Fault:
    kind = chance.choice(WORKER_FAULTS)
    seconds = round(LEASE_SECONDS * chance.choice((0.3, 1.2, 1.6, 2.5)), 3)
    return Fault(_time(chance), kind, chance.choice(workers).name, seconds)


def _critical_fault(chance: random.Random, workers: tuple[WorkerPlan, ...]) -> Fault:
    """A fault at the worst time. It is early, to leave time for another attempt and late writes."""
    kind = chance.choice(("crash_at_success", "crash_at_success", "crash_at_end", "freeze_at_end"))
    at = round(chance.uniform(0.3, 4.0), 3)
    return replace(_fault(chance, workers), at=at, kind=kind)


def _step_fault(chance: random.Random, workers: tuple[WorkerPlan, ...]) -> Fault:
    """A fault while a step is written."""
    kind = chance.choice(("crash_at_step", "freeze_at_step", "freeze_at_step"))
    return replace(_fault(chance, workers), at=round(chance.uniform(0.3, 6.0), 3), kind=kind)


def _refusal(chance: random.Random, workers: tuple[WorkerPlan, ...]) -> Fault:
    """The only fault of a scenario without noise; it must not cost an attempt."""
    return Fault(_time(chance), "refuse_at_end", chance.choice(workers).name)
