"""Asking to cancel answers what happened."""

from __future__ import annotations

import pytest

from freehold import Freehold, State
from freehold.model.job import Request
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.types import AttemptEnd
from tests.client.shop import agreet, awaited, claimed, greet


def test_a_waiting_job_is_canceled_at_once(app: Freehold) -> None:
    handle = app.task(greet).enqueue("Ann")
    answer = handle.cancel("not needed", by="ann")
    assert (answer.what, answer.state) == ("done", State.CANCELED)
    job = handle.read()
    assert (job.state, job.reason) == (State.CANCELED, "not needed")
    assert claimed(app) == []


@pytest.mark.requirement("S4.5")
def test_a_leased_job_is_asked_to_stop(app: Freehold) -> None:
    handle = app.task(greet).enqueue("Ann")
    claimed(app)
    answer = handle.cancel("not needed", by="ann")
    assert (answer.what, answer.state) == ("requested", State.ASSIGNED)
    job = handle.read()
    assert (job.request, job.request_by) == (Request.CANCEL, "ann")
    assert job.request_reason == "not needed"


def test_a_finished_job_says_how_it_ended(app: Freehold) -> None:
    handle = app.task(greet).enqueue("Ann")
    attempt = claimed(app)[0]
    app.client.store.finish("w1", [AttemptEnd(attempt, Outcome(kind=OutcomeKind.SUCCESS))])
    answer = handle.cancel()
    assert (answer.what, answer.state) == ("already", State.SUCCEEDED)


def test_a_coroutine_cancels(app: Freehold) -> None:
    task = app.task(agreet)

    async def ask() -> tuple[str, str]:
        handle = await task.aenqueue("Ann")
        answers = await handle.acancel(), await handle.acancel()
        return answers[0].what, answers[1].what

    assert awaited(app, ask()) == ("done", "already")
