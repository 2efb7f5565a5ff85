"""decide() over all combinations: outcomes, requests, lanes, policies, last attempts."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from freehold.model.history import EventKind
from freehold.model.job import Attempt, ErrorInfo, StopRequest
from freehold.model.outcome import SUCCEEDED, Decision, Outcome, OutcomeKind, decide, stage_after
from freehold.model.policy import Policy
from freehold.model.state import FINAL, HOLDS_LANE, TRANSITIONS, State, state_of
from tests.model.builders import ONLY_IN_LANES, an_attempt

K = OutcomeKind
#: P7: ends by error, timeout or lost lease; RetryLater counts as an error.
CHARGED = frozenset({K.ERROR, K.TIMEOUT, K.LOST_LEASE, K.RETRY_LATER})
REFUNDED = frozenset({K.SNOOZE, K.SUSPEND, K.PAUSE, K.DRAIN, K.GIVE_BACK})
ERROR = ErrorInfo("ValueError", "no")
CHANCE = 0.5
POLICIES = [
    Policy(on_lease_expired=expired, on_cancel=cancel, on_drain=drain, lane_on_failure=failure)  # type: ignore[arg-type]
    for expired, cancel, drain, failure in itertools.product(
        ["retry", "fail"],
        ["auto", "cancel", "pause"],
        ["auto", "requeue", "pause"],
        ["block", "skip"],
    )
]


class Case(NamedTuple):
    attempt: Attempt
    outcome: Outcome
    request: StopRequest | None
    policy: Policy
    decision: Decision

    @property
    def kind(self) -> OutcomeKind:
        return self.outcome.kind

    @property
    def in_lane(self) -> bool:
        return self.attempt.target is not None

    @property
    def is_last(self) -> bool:
        return self.attempt.number >= self.attempt.max_attempts


@functools.cache
def cases() -> list[Case]:
    """Built at first use, so that collecting the tests stays fast."""
    return [*_cases()]


def _cases() -> Iterator[Case]:
    outcomes = [
        Outcome(kind=kind, error=ERROR, reason="why", delay_seconds=delay, retryable=retryable)
        for kind, delay, retryable in itertools.product(K, [None, 0.0, 9.0], [True, False])
    ]
    attempts = itertools.product(POLICIES, [None, "lane"], [1, 3])
    for (policy, target, number), outcome, request in itertools.product(
        attempts, outcomes, [None, *StopRequest]
    ):
        attempt = an_attempt(policy, target=target, number=number)
        yield Case(attempt, outcome, request, policy, decide(attempt, outcome, request, CHANCE))


def where(
    *kinds: OutcomeKind, request: StopRequest | bool | None = False, lane: bool | None = None
) -> list[Case]:
    """Cases of these kinds; ``request=False``: with any request, or none."""
    found = [
        case
        for case in cases()
        if case.kind in kinds and request in (False, case.request) and lane in (None, case.in_lane)
    ]
    assert found
    return found


@pytest.mark.requirement("S0.1", "P3")
def test_every_decision_is_a_transition_of_the_state_machine() -> None:
    for case in cases():
        assert case.decision.state in TRANSITIONS[State.RUNNING] & TRANSITIONS[State.ASSIGNED]


@pytest.mark.requirement("S2.5")
def test_every_decision_but_that_of_a_success_keeps_error_and_reason() -> None:
    for case in where(*(kind for kind in K if kind is not K.SUCCESS)):
        assert case.decision.error == ERROR
        assert case.decision.reason


@pytest.mark.requirement("P7")
def test_errors_timeouts_and_lost_leases_are_charged() -> None:
    assert not any(case.decision.refund for case in where(*CHARGED))


@pytest.mark.requirement("P7", "S4.11")
def test_snooze_pause_drain_and_give_back_are_refunded() -> None:
    assert all(case.decision.refund for case in where(*REFUNDED))


@pytest.mark.requirement("P7", "S2.7", "S3.3")
def test_after_the_last_attempt_nothing_charged_returns_to_the_queue() -> None:
    for case in where(*CHARGED):
        if case.is_last:
            assert case.decision.state is not State.QUEUED


@pytest.mark.requirement("P7")
def test_only_a_lost_lease_counts_as_lost() -> None:
    assert all(case.decision.lost is (case.kind is K.LOST_LEASE) for case in cases())


@pytest.mark.requirement("P2")
def test_a_pause_request_is_obeyed_by_every_outcome_that_leaves_the_job_unfinished() -> None:
    for case in where(
        *CHARGED, K.SNOOZE, K.SUSPEND, K.PAUSE, K.DRAIN, K.GIVE_BACK, request=StopRequest.PAUSE
    ):
        assert case.decision.state is State.PAUSED
        assert case.decision.obeys


@pytest.mark.requirement("P2", "S4.10")
def test_a_handlers_own_cancel_wins_over_a_pause_request() -> None:
    for case in where(K.CANCEL, request=StopRequest.PAUSE):
        assert case.decision.state is State.CANCELED


@pytest.mark.requirement("P2", "S4.6")
def test_a_cancel_request_is_obeyed_and_lanes_pause_instead() -> None:
    unfinished = (*CHARGED, K.SNOOZE, K.SUSPEND, K.PAUSE, K.DRAIN, K.GIVE_BACK, K.CANCEL)
    for case in where(*unfinished, request=StopRequest.CANCEL):
        pauses = case.policy.on_cancel == "pause" or (
            case.policy.on_cancel == "auto" and case.in_lane
        )
        assert case.decision.state is (State.PAUSED if pauses else State.CANCELED)
        interrupted = "Job was interrupted by user: canceled"
        assert case.decision.reason == (interrupted if pauses else "why")


@pytest.mark.requirement("P2")
def test_a_success_or_the_handlers_own_failure_wins_over_any_request() -> None:
    assert all(case.decision == SUCCEEDED for case in where(K.SUCCESS))
    assert all(case.decision.state is State.FAILED for case in where(K.FAIL))


@pytest.mark.requirement("S3.3")
def test_an_expired_lease_is_handled_like_a_failure() -> None:
    for case in where(K.LOST_LEASE, request=None):
        if case.policy.on_lease_expired == "retry":
            error = Outcome(
                kind=K.ERROR,
                retryable=case.outcome.retryable,
                delay_seconds=case.outcome.delay_seconds,
            )
            same = decide(case.attempt, error, None, CHANCE)
            assert case.decision.state is same.state
            assert case.decision.delay_seconds == same.delay_seconds


@pytest.mark.requirement("S4.9")
def test_by_policy_an_expired_lease_fails_the_job_at_once() -> None:
    for case in where(K.LOST_LEASE, request=None):
        if case.policy.on_lease_expired == "fail":
            assert case.decision.state is State.FAILED
            assert case.decision.reason == "its worker was lost 1 time"


@pytest.mark.requirement("S4.9", "S3.3")
@pytest.mark.parametrize("policy", [Policy(), Policy(on_lease_expired="fail")])
def test_the_reason_contains_the_number_of_lost_workers(policy: Policy) -> None:
    attempt = an_attempt(policy, number=3, lost_attempts=1)
    decision = decide(attempt, Outcome(kind=K.LOST_LEASE), None, CHANCE)
    assert decision.reason == "its worker was lost 2 times"


@pytest.mark.requirement("S2.7", "S2.6")
def test_a_retry_waits_by_policy_unless_the_handler_set_a_delay() -> None:
    for case in where(*CHARGED, request=None):
        if case.decision.state is State.QUEUED:
            delay = case.outcome.delay_seconds
            policy_wait = case.policy.retry.delay_seconds(case.attempt.number, CHANCE)
            assert case.decision.delay_seconds == (policy_wait if delay is None else delay)


@pytest.mark.requirement("S2.6")
def test_an_error_that_is_not_retryable_fails_on_the_first_attempt() -> None:
    for case in where(K.ERROR, K.TIMEOUT, request=None):
        gives_up = case.is_last or not case.outcome.retryable
        assert case.decision.state is (State.FAILED if gives_up else State.QUEUED)


@pytest.mark.requirement("S4.10")
def test_a_handler_can_end_its_job_or_snooze_it() -> None:
    states = {
        K.FAIL: State.FAILED,
        K.PAUSE: State.PAUSED,
        K.CANCEL: State.CANCELED,
        K.SNOOZE: State.QUEUED,
    }
    for kind, state in states.items():
        assert {case.decision.state for case in where(kind, request=None)} == {state}
    for case in where(K.SNOOZE, request=None):
        assert case.decision.delay_seconds == (case.outcome.delay_seconds or 0.0)


@pytest.mark.requirement("S4.11")
def test_a_drain_pauses_lane_jobs_and_requeues_the_others_per_policy() -> None:
    for case in where(K.DRAIN, request=None):
        pauses = case.policy.on_drain == "pause" or (
            case.policy.on_drain == "auto" and case.in_lane
        )
        assert case.decision.state is (State.PAUSED if pauses else State.QUEUED)
        assert case.decision.event is EventKind.DRAINED
        interrupted = "Job was interrupted by user: worker w1 was shut down before the job ended"
        assert case.decision.reason == (interrupted if pauses else "why")


@pytest.mark.requirement("S4.11")
def test_a_job_that_is_given_back_is_ready_at_once() -> None:
    for case in where(K.GIVE_BACK, request=None):
        assert (case.decision.state, case.decision.delay_seconds) == (State.QUEUED, 0.0)


@pytest.mark.requirement("S4.3", "S4.7")
def test_a_lane_is_held_until_its_job_leaves_the_live_table() -> None:
    for case in cases():
        stages = stage_after(case.decision, case.attempt)
        blocks = case.in_lane and case.policy.lane_on_failure == "block"
        leaves = case.decision.state in FINAL and not (
            case.decision.state is State.FAILED and blocks
        )
        assert (stages is None) is leaves
        for stage in stages or ():
            assert state_of(stage, started=False) is case.decision.state
            assert (stage in HOLDS_LANE) if case.in_lane else (stage not in ONLY_IN_LANES)


@pytest.mark.requirement("P7")
@given(
    max_attempts=st.integers(1, 4),
    life=st.lists(
        st.tuples(st.sampled_from(K), st.sampled_from([None, *StopRequest])), max_size=30
    ),
)
def test_a_job_never_fails_more_often_than_max_attempts(
    max_attempts: int, life: list[tuple[OutcomeKind, StopRequest | None]]
) -> None:
    counted = charged = 0
    attempt = an_attempt(max_attempts=max_attempts)
    for kind, request in life:
        counted += 1
        attempt = replace(attempt, number=counted)
        decision = decide(attempt, Outcome(kind=kind), request, CHANCE)
        counted -= decision.refund
        charged += kind in CHARGED
        assert charged <= counted <= max_attempts
        if decision.state is not State.QUEUED:
            return
