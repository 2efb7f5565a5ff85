"""A run told to a person: what was planned, what happened, and what was wrong with it."""

from __future__ import annotations

from collections.abc import Iterator

from freehold.lab.simulation.scenario import Call, Operation, Scenario
from freehold.lab.simulation.world import SimulationResult

_TEXT_LIMIT = 160


def trace_lines(played: SimulationResult) -> Iterator[str]:
    program = played.program
    yield f"seed {program.seed}: {_size(program)}"
    for violation in played.violations:
        yield f"  broken: {violation}"
    yield "what was planned:"
    yield from (f"  {line}" for line in _plan(program))
    yield "what happened (seconds, who, what):"
    for at, who, text in played.story:
        yield f"  {at / 1e6:8.3f}  {who:9} {text[:_TEXT_LIMIT]}"


def _size(program: Scenario) -> str:
    jobs = sum(len(call.jobs) for call in program.calls)
    return (
        f"{len(program.workers)} workers, {len(program.calls)} calls with {jobs} jobs, "
        f"{len(program.operations)} operations, {len(program.faults)} faults"
    )


def _plan(program: Scenario) -> Iterator[str]:
    for worker in program.workers:
        only = f", only if {worker.replaces} is gone" if worker.replaces else ""
        yield (
            f"{worker.at:7.3f}  worker {worker.name} of {', '.join(worker.queues)}, "
            f"{worker.concurrency} slots, clock x{worker.rate:g}{only}"
        )
    for name, limit in program.limits:
        yield f"         key {name}: {limit}"
    for name, limit in program.queue_limits:
        yield f"         queue {name}: {limit}"
    for tenant in program.tenants:
        yield f"         {tenant}"
    if program.manager is not None:
        yield f"         {program.manager}"
    yield from (_call(call) for call in program.calls)
    for operation in program.operations:
        yield f"{operation.at:7.3f}  op{operation.number}: {operation.verb} {_of(operation)}"
    for fault in program.faults:
        yield f"{fault.at:7.3f}  {fault.kind} of {fault.worker} for {fault.seconds:g} s"
    for mishap in program.mishaps:
        yield f"{mishap.at:7.3f}  {mishap.kind} of {mishap.tenant} for {mishap.seconds:g} s"


def _of(operation: Operation) -> str:
    return "the next that ends" if operation.at_end else operation.queue


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
