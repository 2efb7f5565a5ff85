"""Cancel, pause and drain at random moments around start and finish: one end, and the told one."""

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
from tests.worker.inside import run, until, working

ROUNDS = 8
JOBS = 25
_OF_REQUEST = {OperatorVerb.CANCEL: State.CANCELED, OperatorVerb.PAUSE: State.PAUSED}


@pytest.mark.requirement("S4.5", "S4.6", "S4.11", "P2", "P7", "S2.3")
def test_requests_and_drains_at_random_moments_end_as_the_callers_were_told(fleet: Fleet) -> None:
    """Two hundred jobs on each store; half of them are asked something, all are drained."""
    chance = random.Random(3)
    told: dict[int, tuple[OperatorVerb, ActionResult]] = {}

    async def one_round() -> list[int]:
        delays = [chance.uniform(0.0, 0.05) for _ in range(JOBS)]
        handles: list[JobHandle] = []
        async with working(fleet, concurrency=6):
            handles += await asyncio.gather(*map(fleet_app.sleeper.aenqueue, delays))
            asking = [_ask(handle, chance, told) for handle in handles[::2]]
            await asyncio.gather(*asking, asyncio.sleep(chance.uniform(0.0, 0.15)))
        # The worker has ended, and leaves nothing behind.
        assert (await fleet.app.aoperate.counts()).leased == 0
        return [handle.id for handle in handles]

    async def all_rounds() -> list[int]:
        ids = [job_id for _ in range(ROUNDS) for job_id in await one_round()]
        _nothing_unstarted_is_charged(fleet, ids)
        async with working(fleet, concurrency=20, grace_seconds=10.0):
            await until(lambda: _settled(fleet, ids))
        return ids

    for job_id in run(fleet, all_rounds()):
        _ended_as_told(fleet, job_id, told.get(job_id))
    assert len(told) >= 90
    assert {answer.what for _, answer in told.values()} >= {"done", "requested"}
    fleet.every_second_start_has_a_cause()


async def _ask(
    handle: JobHandle, chance: random.Random, told: dict[int, tuple[OperatorVerb, ActionResult]]
) -> None:
    verb = chance.choice((OperatorVerb.CANCEL, OperatorVerb.PAUSE))
    await asyncio.sleep(chance.uniform(0.0, 0.15))
    job = await handle.aread()
    if verb is OperatorVerb.PAUSE and job.report is not None:
        verb = OperatorVerb.CANCEL  # a finished job cannot be paused: that is refused, not raced
    try:
        answers = await fleet_app.app.aoperate.act(verb, [handle.id], "ann")
    except IllegalTransition:
        return  # it finished between the look and the word
    told[handle.id] = (verb, answers[0])


def _nothing_unstarted_is_charged(fleet: Fleet, ids: list[int]) -> None:
    for job_id, job in fleet.app.client.store.read(ids).items():
        assert job.attempt == (job.state is State.SUCCEEDED), (job_id, job.state, job.attempt)
        assert job.attempt <= len(fleet.record.starts(job_id))


def _settled(fleet: Fleet, ids: list[int]) -> bool:
    jobs = fleet.app.client.store.read(ids).values()
    return all(job.state in (State.SUCCEEDED, State.CANCELED, State.PAUSED) for job in jobs)


def _ended_as_told(
    fleet: Fleet, job_id: int, told: tuple[OperatorVerb, ActionResult] | None
) -> None:
    state = fleet.state(job_id)
    if told is None:
        assert state is State.SUCCEEDED
        return
    verb, answer = told
    if answer.what == "requested":
        assert state in (_OF_REQUEST[verb], State.SUCCEEDED), (job_id, verb, state)
    else:
        assert state is answer.state, (job_id, verb, answer, state)
    assert (state is State.SUCCEEDED) == ("end" in fleet.record.words(job_id))


@pytest.mark.requirement("S4.11", "P7", "P13")
def test_processes_that_get_sigterm_at_random_moments_leave_nothing_leased(fleet: Fleet) -> None:
    chance = random.Random(5)
    ids = [fleet_app.sleeper.enqueue(chance.uniform(0.0, 0.1)).id for _ in range(120)]
    for _ in range(5):
        worker = fleet.start("--concurrency", "3", "--grace-seconds", "0").until_ready()
        moment = time.monotonic() + chance.uniform(0.0, 0.3)
        eventually(lambda moment=moment: time.monotonic() >= moment)  # type: ignore[misc]
        worker.send(signal.SIGTERM)
        assert worker.ended() == 0
        eventually(fleet.nothing_leased)
        _nothing_unstarted_is_charged(fleet, ids)
    fleet.start("--concurrency", "20")
    for job_id in ids:
        assert fleet.succeeded(job_id).attempt == 1
    fleet.every_second_start_has_a_cause()
