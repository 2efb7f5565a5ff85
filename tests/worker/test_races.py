"""Cancel, pause and drain at random moments around start and finish: one end, as promised."""

from __future__ import annotations

import asyncio
import random
import signal
import time

import pytest

from freehold import IllegalTransition, JobHandle
from freehold.model.operator_actions import ActionResult, OperatorVerb
from freehold.model.state import State
from tests.worker import fleet_app
from tests.worker.fleet import Fleet, eventually
from tests.worker.in_loop_worker import run, until, working

ROUNDS = 8
JOBS = 25
_STATE_AFTER = {OperatorVerb.CANCEL: State.CANCELED, OperatorVerb.PAUSE: State.PAUSED}


@pytest.mark.requirement("S4.5", "S4.6", "S4.11", "P2", "P7", "S2.3")
def test_requests_and_drains_at_random_moments_end_as_the_operator_was_promised(
    fleet: Fleet,
) -> None:
    """Two hundred jobs on each store; half of them get a request, all are drained."""
    chance = random.Random(3)
    promised: dict[int, tuple[OperatorVerb, ActionResult]] = {}

    async def one_round() -> list[int]:
        delays = [chance.uniform(0.0, 0.05) for _ in range(JOBS)]
        handles: list[JobHandle] = []
        async with working(fleet, concurrency=6):
            handles += await asyncio.gather(*map(fleet_app.sleeper.aenqueue, delays))
            requests = [_request(handle, chance, promised) for handle in handles[::2]]
            await asyncio.gather(*requests, asyncio.sleep(chance.uniform(0.0, 0.15)))
        # The worker has ended, and no lease is left.
        assert (await fleet.app.aoperator.counts()).leased == 0
        return [handle.id for handle in handles]

    async def all_rounds() -> list[int]:
        ids = [job_id for _ in range(ROUNDS) for job_id in await one_round()]
        _nothing_unstarted_is_charged(fleet, ids)
        async with working(fleet, concurrency=20, shutdown_grace_seconds=10.0):
            await until(lambda: _settled(fleet, ids))
        return ids

    for job_id in run(fleet, all_rounds()):
        _check_end(fleet, job_id, promised.get(job_id))
    assert len(promised) >= 90
    assert {result.status for _, result in promised.values()} >= {"done", "requested"}
    fleet.every_second_start_has_a_cause()


async def _request(
    handle: JobHandle, chance: random.Random, promised: dict[int, tuple[OperatorVerb, ActionResult]]
) -> None:
    verb = chance.choice((OperatorVerb.CANCEL, OperatorVerb.PAUSE))
    await asyncio.sleep(chance.uniform(0.0, 0.15))
    job = await handle.aread()
    if verb is OperatorVerb.PAUSE and job.report is not None:
        verb = OperatorVerb.CANCEL  # a finished job cannot be paused: that is refused, not raced
    try:
        results = await getattr(fleet_app.app.aoperator, verb)(handle.id, by="ann")
    except IllegalTransition:
        return  # it finished after it was read
    promised[handle.id] = (verb, results[0])


def _nothing_unstarted_is_charged(fleet: Fleet, ids: list[int]) -> None:
    for job_id, job in fleet.app._client.store.read(ids).items():
        if job.state is not State.CANCELED:  # a canceled one shows whether it had started
            assert job.attempt == (job.state is State.SUCCEEDED), (job_id, job.state, job.attempt)
        assert job.attempt <= len(fleet.record.starts(job_id))


def _settled(fleet: Fleet, ids: list[int]) -> bool:
    jobs = fleet.app._client.store.read(ids).values()
    return all(job.state in (State.SUCCEEDED, State.CANCELED, State.PAUSED) for job in jobs)


def _check_end(
    fleet: Fleet, job_id: int, promised: tuple[OperatorVerb, ActionResult] | None
) -> None:
    state = fleet.state(job_id)
    if promised is None:
        assert state is State.SUCCEEDED
        return
    verb, result = promised
    if result.status == "requested":
        assert state in (_STATE_AFTER[verb], State.SUCCEEDED), (job_id, verb, state)
    else:
        assert state is result.state, (job_id, verb, result, state)
    assert (state is State.SUCCEEDED) == ("end" in fleet.record.steps(job_id))


@pytest.mark.requirement("S4.11", "P7", "P13")
def test_processes_that_get_sigterm_at_random_moments_leave_nothing_leased(fleet: Fleet) -> None:
    chance = random.Random(5)
    ids = [fleet_app.sleeper.enqueue(chance.uniform(0.0, 0.1)).id for _ in range(120)]
    for _ in range(5):
        worker = fleet.start("--concurrency", "3", "--shutdown-grace-seconds", "0").until_ready()
        signal_at = time.monotonic() + chance.uniform(0.0, 0.3)
        eventually(lambda signal_at=signal_at: time.monotonic() >= signal_at)  # type: ignore[misc]
        worker.send(signal.SIGTERM)
        assert worker.ended() == 0
        eventually(fleet.nothing_leased)
        _nothing_unstarted_is_charged(fleet, ids)
    fleet.start("--concurrency", "20")
    for job_id in ids:
        assert fleet.succeeded(job_id).attempt == 1
    fleet.every_second_start_has_a_cause()
