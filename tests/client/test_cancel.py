"""Canceling a job returns what happened."""

from __future__ import annotations

import pytest

from freehold import Freehold, State
from freehold.model.job import StopRequest
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.types import AttemptEnd
from tests.client.helpers import agreet, awaited, claimed, greet


def test_a_waiting_job_is_canceled_at_once(app: Freehold) -> None:
    handle = app.task(greet).enqueue("Ann")
    result = handle.cancel("not needed", by="ann")
    assert (result.status, result.state) == ("done", State.CANCELED)
    job = handle.read()
    assert (job.state, job.reason) == (State.CANCELED, "not needed")
    assert claimed(app) == []


@pytest.mark.requirement("S4.5")
def test_the_worker_of_a_leased_job_is_asked_to_stop_it(app: Freehold) -> None:
    handle = app.task(greet).enqueue("Ann")
    claimed(app)
    result = handle.cancel("not needed", by="ann")
    assert (result.status, result.state) == ("requested", State.ASSIGNED)
    job = handle.read()
    assert (job.stop_request, job.stop_requested_by) == (StopRequest.CANCEL, "ann")
    assert job.stop_request_reason == "not needed"


def test_the_state_of_a_finished_job_is_returned(app: Freehold) -> None:
    handle = app.task(greet).enqueue("Ann")
    attempt = claimed(app)[0]
    app._client.store.finish("w1", [AttemptEnd(attempt, Outcome(kind=OutcomeKind.SUCCESS))])
    result = handle.cancel()
    assert (result.status, result.state) == ("already", State.SUCCEEDED)


def test_a_coroutine_cancels_a_job(app: Freehold) -> None:
    task = app.task(agreet)

    async def cancel_twice() -> tuple[str, str]:
        handle = await task.aenqueue("Ann")
        results = await handle.acancel(), await handle.acancel()
        return results[0].status, results[1].status

    assert awaited(app, cancel_twice()) == ("done", "already")
