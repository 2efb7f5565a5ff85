"""A run as readable text: the violations, the scenario, and everything that happened."""

from __future__ import annotations

from collections.abc import Iterator

from freehold.lab.simulation.scenario import Call, Operation, Scenario
from freehold.lab.simulation.world import SimulationResult
from freehold.model.plural import count

_TEXT_LIMIT = 160


def trace_lines(result: SimulationResult) -> Iterator[str]:
    scenario = result.scenario
    yield f"seed {scenario.seed}: {_size(scenario)}"
    for violation in result.violations:
        yield f"  violation: {violation}"
    yield "scenario:"
    yield from (f"  {line}" for line in _plan(scenario))
    yield "trace (seconds, machine, event):"
    for at, actor, text in result.trace:
        yield f"  {at / 1e6:8.3f}  {actor:9} {text[:_TEXT_LIMIT]}"


def _size(scenario: Scenario) -> str:
    jobs = sum(len(call.jobs) for call in scenario.calls)
    return (
        f"{count(len(scenario.workers), 'worker')}, {count(len(scenario.calls), 'call')} with "
        f"{count(jobs, 'job')}, {count(len(scenario.operations), 'operation')}, "
        f"{count(len(scenario.faults), 'fault')}"
    )


def _plan(scenario: Scenario) -> Iterator[str]:
    for worker in scenario.workers:
        condition = f", after {worker.replaces} has ended" if worker.replaces else ""
        yield (
            f"{worker.at:7.3f}  worker {worker.name} serves {', '.join(worker.queues)}, "
            f"{count(worker.concurrency, 'slot')}, clock x{worker.rate:g}{condition}"
        )
    for name, limit in scenario.limits:
        yield f"         key {name}: {limit}"
    for name, limit in scenario.queue_limits:
        yield f"         queue {name}: {limit}"
    for tenant in scenario.tenants:
        yield f"         {tenant}"
    if scenario.manager is not None:
        yield f"         {scenario.manager}"
    yield from (_call(call) for call in scenario.calls)
    for operation in scenario.operations:
        yield f"{operation.at:7.3f}  op{operation.number}: {operation.verb} {_subject(operation)}"
    for fault in scenario.faults:
        yield f"{fault.at:7.3f}  {fault.kind} of {fault.worker} for {fault.seconds:g} s"
    for each in scenario.tenant_faults:
        yield f"{each.at:7.3f}  {each.kind} of {each.tenant} for {each.seconds:g} s"


def _subject(operation: Operation) -> str:
    return "of the next job that ends" if operation.at_end else operation.queue or "of a job"


def _call(call: Call) -> str:
    jobs = "; ".join(
        " ".join(
            [job.task, job.queue]
            + [
                f"{name}={value}"
                for name, value in (
                    ("target", job.target),
                    ("unique_key", job.unique_key),
                    ("limit_key", job.limit_key),
                    ("delay", job.delay),
                    ("timeout", job.timeout),
                    ("priority", job.priority or None),
                    ("max_attempts", job.max_attempts),
                    ("pending", job.pending or None),
                    ("runs", list(job.runs) or None),
                )
                if value is not None
            ]
        )
        for job in call.jobs
    )
    key = " with a key" if call.idempotent else ""
    return f"{call.at:7.3f}  c{call.number}{key}: {jobs}"
