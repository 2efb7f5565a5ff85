"""plan(): what each verb of an operator means for a job in each state and stage."""

from __future__ import annotations

import pytest

from freehold.errors import IllegalTransition
from freehold.model.history import EventKind
from freehold.model.job import Job, Request
from freehold.model.operator_actions import NoChange, OperatorVerb, RequestStop, Transition, plan
from freehold.model.state import FINAL, HOLDS_LANE, LEASED, TRANSITIONS, Stage, State, state_of
from tests.model.building import ONLY_IN_LANES, a_job

S = State
JOBS = [
    a_job(stage, target=target, started=started, attempt=attempt)
    for stage in Stage
    for target in (None, "lane")
    for started in ((False, True) if stage is Stage.HELD else (False,))
    for attempt in (0, 1, 3)
    if target is not None or stage not in ONLY_IN_LANES
] + [
    a_job(None, state=state, target=target, attempt=attempt)
    for state in sorted(FINAL)
    for target in (None, "lane")
    for attempt in (0, 1, 3)
]
CASES = [(verb, job) for verb in OperatorVerb for job in JOBS]

#: The whole meaning, by hand. A state: the job becomes it. True: it is already so. A request:
#: its owner is asked. None: impossible.
MEANING: dict[OperatorVerb, dict[State, State | Request | bool | None]] = {
    OperatorVerb.CANCEL: {
        S.PENDING: S.CANCELED,
        S.QUEUED: S.CANCELED,
        S.ASSIGNED: Request.CANCEL,
        S.RUNNING: Request.CANCEL,
        S.PAUSED: S.CANCELED,
        S.SUCCEEDED: True,
        S.FAILED: S.CANCELED,
        S.CANCELED: True,
    },
    OperatorVerb.PAUSE: {
        S.PENDING: None,
        S.QUEUED: S.PAUSED,
        S.ASSIGNED: Request.PAUSE,
        S.RUNNING: Request.PAUSE,
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


def moves() -> list[tuple[OperatorVerb, Job, Transition]]:
    found = []
    for verb, job in CASES:
        if isinstance(MEANING[verb][job.state], State):
            move = plan(verb, job)
            assert isinstance(move, Transition)
            found.append((verb, job, move))
    return found


@pytest.mark.requirement("S0.1", "P5", "S4.8")
@pytest.mark.parametrize("verb", OperatorVerb)
def test_each_verb_means_what_the_table_says_in_every_state(verb: OperatorVerb) -> None:
    for job in JOBS:
        meaning = MEANING[verb][job.state]
        if meaning is None:
            with pytest.raises(IllegalTransition, match=f"job {job.id} is {job.state}"):
                plan(verb, job)
            continue
        step = plan(verb, job)
        match step:
            case Transition():
                assert step.state is meaning
            case RequestStop():
                assert step.request is meaning
            case NoChange():
                assert meaning is True
                assert step.state is job.state


@pytest.mark.requirement("S0.1")
def test_every_move_is_an_arrow_of_the_state_machine() -> None:
    for _, job, move in moves():
        assert move.state in TRANSITIONS[job.state]


@pytest.mark.requirement("S0.1")
def test_nobody_moves_a_job_that_somebody_owns() -> None:
    assert all(job.state not in LEASED for _, job, _ in moves())


def test_final_states_leave_the_live_table_and_others_stand_in_a_stage_of_theirs() -> None:
    for _, job, move in moves():
        assert (move.stages is None) is (move.state in FINAL)
        for stage in move.stages or ():
            assert state_of(stage, started=False) is move.state
            assert job.target is not None or stage not in ONLY_IN_LANES


@pytest.mark.requirement("P6", "S4.7")
def test_a_holder_keeps_its_lane_and_nobody_else_takes_it() -> None:
    for _, job, move in moves():
        held = job.target is not None and job.stage in HOLDS_LANE
        for stage in move.stages or ():
            assert job.target is None or (stage in HOLDS_LANE) is held


@pytest.mark.requirement("P6")
def test_a_paused_follower_goes_back_behind_its_holder() -> None:
    job = a_job(Stage.FOLLOWER_PAUSED, target="lane")
    move = plan(OperatorVerb.RESUME, job)
    assert isinstance(move, Transition)
    assert move.stages == (Stage.FOLLOWER, Stage.WAITING)


@pytest.mark.requirement("P5")
def test_resume_gives_fresh_attempts_only_where_they_were_spent() -> None:
    for verb, job, move in moves():
        if verb is OperatorVerb.RESUME:
            assert move.fresh_attempts is (job.attempt >= job.max_attempts)


@pytest.mark.requirement("P5")
def test_retry_always_gives_a_fresh_budget_and_other_verbs_never_do() -> None:
    for verb, _, move in moves():
        if verb is OperatorVerb.RETRY:
            assert move.fresh_attempts
        elif verb is not OperatorVerb.RESUME:
            assert not move.fresh_attempts


@pytest.mark.requirement("P5")
def test_a_time_that_has_not_come_is_still_waited_for() -> None:
    for verb, job, move in moves():
        if verb in (OperatorVerb.PAUSE, OperatorVerb.SUBMIT):
            assert move.keep_run_at
        if verb is OperatorVerb.RESUME:
            assert move.keep_run_at is (job.state is S.PAUSED and job.attempt == 0)
        if verb is OperatorVerb.RETRY:
            assert not move.keep_run_at


@pytest.mark.requirement("S2.5")
def test_every_verb_leaves_an_event_of_its_own() -> None:
    told = {
        verb: {move.event for each, _, move in moves() if each is verb} for verb in OperatorVerb
    }
    assert told == {
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
        (OperatorVerb.RESUME, a_job(Stage.NEW), "enqueue it first"),
        (OperatorVerb.RETRY, a_job(Stage.PAUSED), "`resume` continues a paused job"),
        (OperatorVerb.PAUSE, a_job(Stage.NEW), "from pending it can become canceled, queued"),
    ],
)
def test_a_refusal_says_what_to_do_instead(verb: OperatorVerb, job: Job, remedy: str) -> None:
    with pytest.raises(IllegalTransition) as refusal:
        plan(verb, job)
    assert remedy in str(refusal.value)
