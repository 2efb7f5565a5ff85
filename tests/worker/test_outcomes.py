"""How handlers can end, in real workers: exceptions, invalid values, retries, due times."""

from __future__ import annotations

import pytest

from freehold.model.history import Event, EventKind
from freehold.model.state import State
from freehold.worker.execution import outcomes
from tests.worker import fleet_app
from tests.worker.fleet import Fleet

_S, _E = State, EventKind
#: how -> state, attempts that count, reason, events
_ENDS = {
    "return": (_S.SUCCEEDED, 1, None, []),
    "retry_later": (_S.SUCCEEDED, 2, None, [_E.RETRIED]),
    "snooze": (_S.SUCCEEDED, 1, None, [_E.SNOOZED]),
    "pause": (_S.PAUSED, 0, "needs an operator", [_E.PAUSED]),
    "cancel": (_S.CANCELED, 1, "not needed any more", [_E.CANCELED]),
    "fail": (_S.FAILED, 1, "the budget is spent", [_E.FAILED]),
    "error": (_S.SUCCEEDED, 2, None, [_E.RETRIED]),
}


@pytest.mark.requirement("S4.10", "S2.5", "S2.7", "P7")
@pytest.mark.either_store
def test_every_handler_exception_leads_to_its_promised_state(fleet: Fleet) -> None:
    fleet.start()
    ids = {how: fleet_app.ends.enqueue(how).id for how in _ENDS}
    for how, (state, attempt, reason, events) in _ENDS.items():
        job = fleet.until(ids[how], state)
        assert (how, job.attempt, job.reason) == (how, attempt, reason)
        assert (how, fleet.events(job.id)) == (how, events)
        if state is State.SUCCEEDED:
            assert job.report is not None
            assert job.report.result == ("second" if events else "first")
    reasons = [
        e.reason for how in ("retry_later", "snooze", "error") for e in _events(fleet, ids[how])
    ]
    assert reasons == ["the other side is busy", "too early", "ValueError: a plain one"]
    assert fleet.app.operator.resume(ids["pause"], by="ann")[0].status == "done"
    assert fleet.succeeded(ids["pause"]).attempt == 1


def _events(fleet: Fleet, job_id: int) -> list[Event]:
    return fleet.app._client.store.events(job_id)


@pytest.mark.requirement("S2.6", "S2.7", "S3.3", "P7")
@pytest.mark.either_store
def test_attempts_and_waits_follow_the_policy_of_the_task_and_of_the_job(fleet: Fleet) -> None:
    fleet.start()
    by_task = fleet_app.always_fails.enqueue().id
    by_job = fleet_app.always_fails.using(max_attempts=1).enqueue().id
    hopeless = fleet_app.gives_up.enqueue().id
    job = fleet.until(by_task, State.FAILED)
    assert (job.attempt, job.reason) == (
        3,
        "attempt 3 of 3 failed: RuntimeError: attempt 3 went wrong",
    )
    waits = [(e.due_at - e.at).total_seconds() for e in _events(fleet, by_task) if e.due_at]
    assert waits == pytest.approx([0.2, 0.4], abs=0.01)
    starts = [line.at for line in fleet.record.starts(by_task)]
    assert starts[1] - starts[0] >= 0.2
    assert starts[2] - starts[1] >= 0.4
    assert fleet.until(by_job, State.FAILED).attempt == 1
    assert fleet.until(hopeless, State.FAILED).attempt == 1


@pytest.mark.requirement("S2.7", "S2.4")
@pytest.mark.either_store
def test_a_scheduled_job_runs_when_it_is_due_and_not_before(fleet: Fleet) -> None:
    fleet.start().until_ready()
    ids = [fleet_app.quick.using(delay=delay).enqueue().id for delay in (0.3, 0.6)]
    for job_id in ids:
        job = fleet.succeeded(job_id)
        assert job.report is not None
        assert job.report.leased_at is not None
        assert job.report.leased_at >= job.run_at


@pytest.mark.requirement("S2.5")
@pytest.mark.either_store
def test_results_that_cannot_be_stored_fail_the_job_with_the_reason(fleet: Fleet) -> None:
    reasons = {
        "object": "the result is not JSON",
        "nul": "the result holds a NUL character",
        "surrogate": "the result holds a lone surrogate",
        "nan": "the result holds nan",
        "huge": "the result has 2,000,002 bytes of JSON; the limit is",
        "deep": "the result is nested deeper than",
    }
    fleet.start()
    for task in (fleet_app.returns_invalid, fleet_app.returns_invalid_apart):
        ids = {task.enqueue(what).id: reason for what, reason in reasons.items()}
        for job_id, reason in ids.items():
            job = fleet.until(job_id, State.FAILED)
            assert job.reason is not None
            assert job.reason.startswith(reason)
            assert job.report is not None
            assert job.report.error is not None
            assert job.report.error.type == "freehold.errors.BadPayload"


@pytest.mark.requirement("S2.5")
@pytest.mark.either_store
def test_error_texts_are_stored_safe_and_bounded(fleet: Fleet) -> None:
    texts = {"nul": "a\\0b", "surrogate": "a\\ud800b", "huge": "x" * 100, "json": '"}{\\u0000'}
    fleet.start()
    for task in (fleet_app.raises_invalid, fleet_app.raises_invalid_apart):
        ids = {task.enqueue(what).id: text for what, text in texts.items()}
        for job_id, text in ids.items():
            job = fleet.until(job_id, State.FAILED)
            assert job.report is not None
            error = job.report.error
            assert error is not None
            assert error.type == "builtins.RuntimeError"
            assert error.message.startswith(text)
            assert len(error.message) <= 2_000
            assert error.trace is not None
            assert len(error.trace) <= 8_000
            assert job.reason is not None
            assert len(job.reason) <= 400


def test_errors_of_one_name_from_two_modules_have_types_that_differ() -> None:
    ours = type("TimeoutError", (Exception,), {"__module__": "shop.errors"})
    found = [outcomes.error_of(error).type for error in (ours(), TimeoutError())]
    assert found == ["shop.errors.TimeoutError", "builtins.TimeoutError"]
