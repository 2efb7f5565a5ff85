"""plan(): the effect of each operator verb on a job in each state and stage."""

from __future__ import annotations

import pytest

from freehold.errors import IllegalTransition
from freehold.model.bulk import plan_amend
from freehold.model.history import EventKind
from freehold.model.job import Job, StopRequest
from freehold.model.operator_actions import NoChange, OperatorVerb, RequestStop, Transition, plan
from freehold.model.state import FINAL, HOLDS_LANE, LEASED, TRANSITIONS, Stage, State, state_of
from tests.model.builders import ONLY_IN_LANES, a_job

S = State
JOBS = [
    a_job(stage, target=target, started=started, attempt=attempt)
    for stage in Stage
    for target in (None, "lane")
    for started in ((False, True) if stage is Stage.LEASED else (False,))
    for attempt in (0, 1, 3)
    if target is not None or stage not in ONLY_IN_LANES
] + [
    a_job(None, state=state, target=target, attempt=attempt)
    for state in sorted(FINAL)
    for target in (None, "lane")
    for attempt in (0, 1, 3)
]
CASES = [(verb, job) for verb in OperatorVerb for job in JOBS]

#: The effect of each verb. A state: the new state. True: no change. A request: the job's worker is
#: asked. None: not allowed.
EFFECT: dict[OperatorVerb, dict[State, State | StopRequest | bool | None]] = {
    OperatorVerb.CANCEL: {
        S.PENDING: S.CANCELED,
        S.QUEUED: S.CANCELED,
        S.ASSIGNED: StopRequest.CANCEL,
        S.RUNNING: StopRequest.CANCEL,
        S.PAUSED: S.CANCELED,
        S.SUCCEEDED: True,
        S.FAILED: S.CANCELED,
        S.CANCELED: True,
    },
    OperatorVerb.PAUSE: {
        S.PENDING: None,
        S.QUEUED: S.PAUSED,
        S.ASSIGNED: StopRequest.PAUSE,
        S.RUNNING: StopRequest.PAUSE,
        S.PAUSED: True,
        S.SUCCEEDED: None,
        S.FAILED: None,
        S.CANCELED: None,
    },
    OperatorVerb.RESUME: {
        S.PENDING: None,
        S.QUEUED: True,
        S.ASSIGNED: True,
        S.RUNNING: True,
        S.PAUSED: S.QUEUED,
        S.SUCCEEDED: None,
        S.FAILED: S.QUEUED,
        S.CANCELED: None,
    },
    OperatorVerb.RETRY: {
        S.PENDING: None,
        S.QUEUED: None,
        S.ASSIGNED: None,
        S.RUNNING: None,
        S.PAUSED: None,
        S.SUCCEEDED: S.QUEUED,
        S.FAILED: S.QUEUED,
        S.CANCELED: S.QUEUED,
    },
    OperatorVerb.SUBMIT: {
        S.PENDING: S.QUEUED,
        S.QUEUED: True,
        S.ASSIGNED: True,
        S.RUNNING: True,
        S.PAUSED: None,
        S.SUCCEEDED: None,
        S.FAILED: None,
        S.CANCELED: None,
    },
}


def transitions() -> list[tuple[OperatorVerb, Job, Transition]]:
    found = []
    for verb, job in CASES:
        if isinstance(EFFECT[verb][job.state], State):
            transition = plan(verb, job)
            assert isinstance(transition, Transition)
            found.append((verb, job, transition))
    return found


@pytest.mark.requirement("S0.1", "P5", "S4.8")
@pytest.mark.parametrize("verb", OperatorVerb)
def test_each_verb_has_the_effect_of_the_table_in_every_state(verb: OperatorVerb) -> None:
    for job in JOBS:
        effect = EFFECT[verb][job.state]
        if effect is None:
            with pytest.raises(IllegalTransition, match=f"job {job.id} is {job.state}"):
                plan(verb, job)
            continue
        step = plan(verb, job)
        match step:
            case Transition():
                assert step.state is effect
            case RequestStop():
                assert step.request is effect
            case NoChange():
                assert effect is True
                assert step.state is job.state


@pytest.mark.requirement("S0.1")
def test_every_transition_is_one_of_the_state_machine() -> None:
    for _, job, transition in transitions():
        assert transition.state in TRANSITIONS[job.state]


@pytest.mark.requirement("S0.1")
def test_a_leased_job_is_not_changed_by_an_operator() -> None:
    assert all(job.state not in LEASED for _, job, _ in transitions())


def test_final_states_leave_the_live_table_and_others_have_a_stage_of_their_state() -> None:
    for _, job, transition in transitions():
        assert (transition.stages is None) is (transition.state in FINAL)
        for stage in transition.stages or ():
            assert state_of(stage, started=False) is transition.state
            assert job.target is not None or stage not in ONLY_IN_LANES


@pytest.mark.requirement("P6", "S4.7")
def test_a_holder_keeps_its_lane_and_no_other_job_takes_it() -> None:
    for _, job, transition in transitions():
        holds_lane = job.target is not None and job.stage in HOLDS_LANE
        for stage in transition.stages or ():
            assert job.target is None or (stage in HOLDS_LANE) is holds_lane


@pytest.mark.requirement("P6", "N16")
def test_a_job_that_is_amended_neither_takes_nor_leaves_a_lane() -> None:
    """Nor does one of any other verb, so that no step of a bulk operation meets a second holder."""
    waiting = [job for job in JOBS if job.stage and job.state not in LEASED | FINAL]
    assert {job.stage for job in waiting} == set(Stage) - {Stage.LEASED, Stage.FAILED}
    for job in waiting:
        holds_lane = job.target is not None and job.stage in HOLDS_LANE
        for stage in plan_amend(job).stages:
            assert job.target is None or (stage in HOLDS_LANE) is holds_lane


@pytest.mark.requirement("P6")
def test_a_paused_follower_goes_back_behind_its_holder() -> None:
    job = a_job(Stage.PAUSED_FOLLOWER, target="lane")
    transition = plan(OperatorVerb.RESUME, job)
    assert isinstance(transition, Transition)
    assert transition.stages == (Stage.FOLLOWER, Stage.SCHEDULED)


@pytest.mark.requirement("P5")
def test_resume_resets_the_attempts_only_if_they_were_used_up() -> None:
    for verb, job, transition in transitions():
        if verb is OperatorVerb.RESUME:
            assert transition.fresh_attempts is (job.attempt >= job.max_attempts)


@pytest.mark.requirement("P5")
def test_retry_always_resets_the_attempts_and_other_verbs_never_do() -> None:
    for verb, _, transition in transitions():
        if verb is OperatorVerb.RETRY:
            assert transition.fresh_attempts
        elif verb is not OperatorVerb.RESUME:
            assert not transition.fresh_attempts


@pytest.mark.requirement("P5")
def test_a_run_at_in_the_future_is_kept() -> None:
    for verb, job, transition in transitions():
        if verb in (OperatorVerb.PAUSE, OperatorVerb.SUBMIT):
            assert transition.keep_run_at
        if verb is OperatorVerb.RESUME:
            assert transition.keep_run_at is (job.state is S.PAUSED and job.attempt == 0)
        if verb is OperatorVerb.RETRY:
            assert not transition.keep_run_at


@pytest.mark.requirement("S2.5")
def test_every_verb_writes_its_own_event() -> None:
    events = {
        verb: {transition.event for each, _, transition in transitions() if each is verb}
        for verb in OperatorVerb
    }
    assert events == {
        OperatorVerb.CANCEL: {EventKind.CANCELED},
        OperatorVerb.PAUSE: {EventKind.PAUSED},
        OperatorVerb.RESUME: {EventKind.RESUMED},
        OperatorVerb.RETRY: {EventKind.RETRIED_BY_HAND},
        OperatorVerb.SUBMIT: {EventKind.ENQUEUED},
    }


@pytest.mark.requirement("S0.1", "P5")
@pytest.mark.parametrize(
    ("verb", "job", "remedy"),
    [
        (OperatorVerb.RESUME, a_job(None, state=S.SUCCEEDED), "`retry` runs a succeeded job again"),
        (OperatorVerb.RESUME, a_job(None, state=S.CANCELED), "`retry` runs a canceled job again"),
        (OperatorVerb.RESUME, a_job(Stage.PENDING), "`submit` puts a pending job"),
        (OperatorVerb.RETRY, a_job(Stage.PAUSED), "`resume` continues a paused job"),
        (OperatorVerb.PAUSE, a_job(Stage.PENDING), "from pending it can become canceled, queued"),
    ],
)
def test_a_refusal_contains_what_to_do_instead(verb: OperatorVerb, job: Job, remedy: str) -> None:
    with pytest.raises(IllegalTransition) as refusal:
        plan(verb, job)
    assert remedy in str(refusal.value)
