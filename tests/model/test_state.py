"""The state machine: the picture agrees with the table, and other transitions are refused."""

from __future__ import annotations

import itertools

import pytest

from freehold.errors import IllegalTransition, Refused
from freehold.model import state as module
from freehold.model.state import (
    FINAL,
    HOLDS_LANE,
    LEASED,
    STATE_OF_STAGE,
    TRANSITIONS,
    Stage,
    State,
    check_transition,
    state_of,
)


def picture(text: str) -> dict[State, frozenset[State]]:
    """The transitions as drawn: `a, b -> c | d`."""
    arrows: dict[State, frozenset[State]] = {}
    for line in text.splitlines():
        sources, arrow, goals = line.partition("->")
        if arrow:
            reached = frozenset(State(goal.strip()) for goal in goals.split("|"))
            arrows.update({State(source.strip()): reached for source in sources.split(",")})
    return arrows


@pytest.mark.requirement("S0.1")
def test_the_picture_agrees_with_the_table() -> None:
    assert module.__doc__ is not None
    assert picture(module.__doc__) == dict(TRANSITIONS)


@pytest.mark.requirement("S0.1")
@pytest.mark.parametrize(("source", "goal"), [*itertools.product(State, State)])
def test_only_transitions_of_the_table_are_allowed(source: State, goal: State) -> None:
    if goal in TRANSITIONS[source]:
        check_transition(7, source, goal)
        return
    with pytest.raises(IllegalTransition) as refusal:
        check_transition(7, source, goal)
    message = str(refusal.value)
    assert f"job 7 is {source} and cannot become {goal}" in message
    assert all(possible in message for possible in TRANSITIONS[source])
    assert isinstance(refusal.value, Refused)


@pytest.mark.requirement("S0.1", "P5")
def test_every_state_can_be_reached_and_left() -> None:
    reached = frozenset().union(*TRANSITIONS.values()) | {State.PENDING}
    assert reached == set(State)
    assert all(TRANSITIONS[state] for state in State)


@pytest.mark.requirement("S0.1")
def test_no_state_leads_to_itself() -> None:
    assert all(state not in goals for state, goals in TRANSITIONS.items())


@pytest.mark.requirement("S0.2", "S1.1")
def test_jobs_are_leased_only_from_the_queue() -> None:
    into_lease = {source for source, goals in TRANSITIONS.items() if goals & LEASED}
    assert into_lease == {State.QUEUED, State.ASSIGNED}


@pytest.mark.requirement("P5")
def test_finished_jobs_run_again_only_through_the_queue() -> None:
    """Or they wait for their sources first, as nodes of a workflow."""
    for state in FINAL:
        assert TRANSITIONS[state] <= {State.QUEUED, State.CANCELED, State.PENDING}


@pytest.mark.requirement("S2.3")
def test_every_stage_has_a_state_and_only_a_started_lease_is_running() -> None:
    assert set(STATE_OF_STAGE) == set(Stage)
    for stage in Stage:
        assert state_of(stage, started=False) is STATE_OF_STAGE[stage]
    assert state_of(Stage.LEASED, started=False) is State.ASSIGNED
    assert state_of(Stage.LEASED, started=True) is State.RUNNING


def test_every_state_of_a_live_job_has_a_stage() -> None:
    shown = {state_of(stage, started) for stage in Stage for started in (False, True)}
    # Jobs that succeeded or were canceled always leave the live table; failed ones may block.
    assert shown == set(State) - {State.SUCCEEDED, State.CANCELED}


def test_stages_are_words() -> None:
    assert all(stage.value == stage.name.lower() for stage in Stage)


@pytest.mark.requirement("S4.3", "S4.7")
def test_leased_paused_and_failed_jobs_hold_their_lane() -> None:
    assert {Stage.LEASED, Stage.PAUSED, Stage.FAILED} <= HOLDS_LANE


@pytest.mark.requirement("P6")
def test_followers_hold_no_lane_even_when_paused() -> None:
    waiting = {Stage.PENDING, Stage.SCHEDULED, Stage.READY, Stage.FOLLOWER, Stage.PAUSED_FOLLOWER}
    assert set(Stage) - HOLDS_LANE == waiting
