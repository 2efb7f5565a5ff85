"""Stop requests: the owner reads them, and every end of the job obeys."""

from __future__ import annotations

import pytest

from freehold.model.history import EventKind
from freehold.model.job import StopRequest
from freehold.model.operator_actions import ActionResult, ActionStatus, OperatorVerb
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.policy import Policy
from freehold.model.state import State
from freehold.store.types import AttemptEnd
from tests.stores import LEASE_SECONDS, StoreUnderTest, key_of

#: Endings that are not the job's own word: a request that came meanwhile outweighs them.
OBEDIENT = (
    OutcomeKind.ERROR,
    OutcomeKind.TIMEOUT,
    OutcomeKind.RETRY_LATER,
    OutcomeKind.SNOOZE,
    OutcomeKind.DRAIN,
    OutcomeKind.GIVE_BACK,
)
CHARGED = (OutcomeKind.ERROR, OutcomeKind.TIMEOUT, OutcomeKind.RETRY_LATER)


@pytest.mark.requirement("S4.5")
@pytest.mark.parametrize(
    ("verb", "request_"),
    [(OperatorVerb.CANCEL, StopRequest.CANCEL), (OperatorVerb.PAUSE, StopRequest.PAUSE)],
)
def test_the_owner_reads_every_stop_request(
    store: StoreUnderTest, verb: OperatorVerb, request_: StopRequest
) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    answer = store.store.operate(verb, [job_id], "ann", "not now")
    assert answer == [ActionResult(job_id, ActionStatus.REQUESTED, State.ASSIGNED)]
    assert store.store.stop_requests("w1") == {key_of(attempt): request_}
    job = store.job(job_id)
    assert (job.stop_request, job.stop_requested_by, job.stop_request_reason) == (
        request_,
        "ann",
        "not now",
    )


@pytest.mark.requirement("S4.5")
def test_an_owner_reads_no_stop_request_of_another(store: StoreUnderTest) -> None:
    mine, other = store.add(), store.add()
    store.claim_one("w1")
    store.claim_one("w2")
    store.store.operate(OperatorVerb.CANCEL, [other], "ann", None)
    assert store.store.stop_requests("w1") == {}
    assert {key.job_id for key in store.store.stop_requests("w2")} == {other}
    assert store.job(mine).stop_request is None


@pytest.mark.requirement("S4.5")
def test_reading_requests_changes_nothing(store: StoreUnderTest) -> None:
    job_id = store.add()
    store.claim_one()
    store.store.operate(OperatorVerb.CANCEL, [job_id], "ann", None)
    before = store.everything()
    assert store.store.stop_requests("w1") == store.store.stop_requests("w1")
    assert store.everything() == before


@pytest.mark.requirement("S4.5")
def test_a_renewal_brings_the_request_along(store: StoreUnderTest) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    store.store.operate(OperatorVerb.CANCEL, [job_id], "ann", None)
    renewed = store.store.renew("w1", [key_of(attempt)], LEASE_SECONDS)
    assert renewed.held == {job_id: StopRequest.CANCEL}


@pytest.mark.requirement("S4.5", "S2.5")
def test_a_repeated_request_is_recorded_once(store: StoreUnderTest) -> None:
    job_id = store.add()
    store.claim_one()
    store.store.operate(OperatorVerb.CANCEL, [job_id], "ann", "first")
    before = store.everything()
    assert (
        store.store.operate(OperatorVerb.CANCEL, [job_id], "bob", "second")[0].status == "requested"
    )
    assert store.everything() == before
    event = store.store.events(job_id)[-1]
    assert (event.kind, event.by, event.reason) == (EventKind.CANCEL_REQUESTED, "ann", "first")


@pytest.mark.requirement("S4.5")
def test_a_cancel_outweighs_a_pause_in_either_order(store: StoreUnderTest) -> None:
    for verbs in (
        (OperatorVerb.PAUSE, OperatorVerb.CANCEL),
        (OperatorVerb.CANCEL, OperatorVerb.PAUSE),
    ):
        job_id = store.add()
        attempt = store.claim_one()
        for verb in verbs:
            store.store.operate(verb, [job_id], "ann", None)
        assert store.job(job_id).stop_request is StopRequest.CANCEL
        assert store.end(attempt, OutcomeKind.ERROR)
        assert store.state(job_id) == "canceled"


@pytest.mark.requirement("P2", "S4.6")
@pytest.mark.parametrize("kind", OBEDIENT)
@pytest.mark.parametrize(
    ("verb", "state"), [(OperatorVerb.CANCEL, "canceled"), (OperatorVerb.PAUSE, "paused")]
)
def test_a_request_the_worker_did_not_see_is_obeyed(
    store: StoreUnderTest, kind: OutcomeKind, verb: OperatorVerb, state: str
) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    store.store.operate(verb, [job_id], "ann", None)
    assert store.end(attempt, kind)
    job = store.job(job_id)
    assert (job.state, job.attempt) == (state, 1 if kind in CHARGED else 0)
    assert job.stop_request is None


@pytest.mark.requirement("P2")
@pytest.mark.parametrize(
    ("kind", "state"), [(OutcomeKind.SUCCESS, "succeeded"), (OutcomeKind.FAIL, "failed")]
)
def test_a_job_that_ended_by_itself_is_not_canceled_afterwards(
    store: StoreUnderTest, kind: OutcomeKind, state: str
) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    store.store.operate(OperatorVerb.CANCEL, [job_id], "ann", None)
    assert store.end(attempt, kind)
    assert store.state(job_id) == state


@pytest.mark.requirement("S4.6")
@pytest.mark.parametrize(
    ("target", "on_cancel", "state", "reason"),
    [
        (None, "auto", "canceled", "enough"),
        ("lane", "auto", "paused", "Job was interrupted by user: canceled by ann: enough"),
        (None, "pause", "paused", "Job was interrupted by user: canceled by ann: enough"),
        ("lane", "cancel", "canceled", "enough"),
    ],
)
def test_a_stopped_job_ends_as_its_policy_says(
    store: StoreUnderTest, target: str | None, on_cancel: str, state: str, reason: str
) -> None:
    policy = Policy(on_cancel=on_cancel)  # type: ignore[arg-type]
    job_id = store.add(target=target, policy=policy)
    attempt = store.claim_one()
    store.store.operate(OperatorVerb.CANCEL, [job_id], "ann", "enough")
    end = AttemptEnd(attempt, Outcome(kind=OutcomeKind.CANCEL, reason="stopped on request"))
    decision = store.store.finish("w1", [end]).decisions[job_id]
    assert (decision.requested_by, decision.reason) == ("ann", reason)
    assert (store.state(job_id), store.job(job_id).reason) == (state, reason)
    assert store.store.events(job_id)[-1].reason == reason


@pytest.mark.requirement("S4.6")
def test_a_cancel_without_a_reason_names_the_operator_all_the_same(store: StoreUnderTest) -> None:
    job_id = store.add(target="lane")
    attempt = store.claim_one()
    store.store.operate(OperatorVerb.CANCEL, [job_id], "ann", None)
    assert store.end(attempt, OutcomeKind.ERROR, reason="stopped by an exception")
    assert store.job(job_id).reason == "Job was interrupted by user: canceled by ann"


@pytest.mark.requirement("S4.6", "P7")
@pytest.mark.parametrize(
    ("target", "ran_seconds", "attempts"), [(None, 8.8, 1), (None, 0.0, 0), ("lane", 8.8, 0)]
)
def test_a_canceled_job_shows_the_attempt_that_ran(
    store: StoreUnderTest, target: str | None, ran_seconds: float, attempts: int
) -> None:
    """One that is paused instead may run again: its attempt is not counted."""
    job_id = store.add(target=target)
    attempt = store.claim_one()
    store.store.operate(OperatorVerb.CANCEL, [job_id], "ann", None)
    assert store.end(attempt, OutcomeKind.CANCEL, ran_seconds=ran_seconds)
    assert store.job(job_id).attempt == attempts


@pytest.mark.requirement("S4.10")
def test_a_handlers_own_cancel_needs_no_request(store: StoreUnderTest) -> None:
    """Even in a lane: the policy is for those that were stopped from outside."""
    job_id = store.add(target="lane")
    assert store.end(store.claim_one(), OutcomeKind.CANCEL, reason="nothing to do")
    assert (store.state(job_id), store.job(job_id).reason) == ("canceled", "nothing to do")


@pytest.mark.requirement("P2", "S4.4")
def test_a_request_does_not_outlive_the_attempt_it_was_for(store: StoreUnderTest) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    store.store.operate(OperatorVerb.PAUSE, [job_id], "ann", None)
    assert store.end(attempt, OutcomeKind.PAUSE)
    store.store.operate(OperatorVerb.RESUME, [job_id], "ann", None)
    again = store.claim_one()
    assert store.store.stop_requests("w1") == {}
    assert store.end(again, OutcomeKind.ERROR)
    assert store.state(job_id) == "queued"


@pytest.mark.requirement("P2")
def test_recovery_obeys_a_request_made_after_the_lease_expired(store: StoreUnderTest) -> None:
    job_id = store.add()
    store.claim_one()
    store.advance(LEASE_SECONDS + 5)
    assert store.store.operate(OperatorVerb.CANCEL, [job_id], "ann", None)[0].status == "requested"
    store.store.recover(10, 0.0)
    assert store.state(job_id) == "canceled"
