"""The rule of schedules: which ticks make a job, which are missed, when to look again."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.errors import BadInput
from freehold.model.job import NewJob
from freehold.model.policy import Policy
from freehold.model.schedule import (
    LOOK_AHEAD,
    TICKS_LIMIT,
    ScheduleDefinition,
    Tick,
    due,
    job_of,
    look_at,
    packed_policy,
    run_at,
    tick_of,
)
from freehold.model.timing import Cron, Every, ticks_between
from freehold.store.rows import json_text
from freehold.store.schedule_text import StoredJob, from_text, to_text

T0 = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def a_definition(**changes: Any) -> ScheduleDefinition:
    values: dict[str, Any] = {
        "name": "books",
        "timing": Every(hours=1),
        "job": NewJob(task="shop.close"),
    }
    return ScheduleDefinition(**{**values, **changes})


@pytest.mark.requirement("N1")
def test_a_new_schedule_never_fires_at_once() -> None:
    definition = a_definition(timing=Cron("0 * * * *"))
    assert look_at(definition, T0, T0, T0) == T0 + HOUR
    assert due(definition, T0, T0, T0).ticks == ()


@pytest.mark.requirement("N2")
def test_last_makes_one_job_for_all_missed_ticks() -> None:
    result = due(a_definition(), T0, T0, T0 + 5.5 * HOUR)
    assert result.ticks == (Tick(T0 + 5 * HOUR, missed=4),)
    assert result.missed == 4
    assert result.counted_to == T0 + 5 * HOUR
    assert result.next_at == T0 + 6 * HOUR


@pytest.mark.requirement("N2")
def test_last_within_a_bound_leaves_older_ticks_missed() -> None:
    definition = a_definition(timing=Every(days=1), within_seconds=3600)
    late = due(definition, T0, T0, T0 + timedelta(days=2, hours=2))
    assert (late.ticks, late.missed) == ((), 2)
    assert late.next_at == T0 + timedelta(days=3)
    assert due(definition, T0, T0, T0 + timedelta(days=2, hours=1)).missed == 1


@pytest.mark.requirement("N2")
def test_none_fires_only_what_is_on_time() -> None:
    definition = a_definition(catch_up="none")
    on_time = due(definition, T0, T0, T0 + HOUR + timedelta(seconds=59))
    assert on_time.ticks == (Tick(T0 + HOUR),)
    late = due(definition, T0, T0, T0 + HOUR + timedelta(seconds=61))
    assert (late.ticks, late.missed) == ((), 1)


@pytest.mark.requirement("N2")
def test_all_drips_through_its_backlog_in_bounded_batches() -> None:
    definition = a_definition(timing=Every(minutes=1), catch_up="all", within_seconds=3 * 3600)
    now, counted_to, sizes = T0 + 4 * HOUR, T0, []
    fired: list[datetime] = []
    missed = 0
    while True:
        result = due(definition, T0, counted_to, now)
        counted_to, missed = result.counted_to, missed + result.missed
        fired += [tick.at for tick in result.ticks]
        sizes.append(len(result.ticks))
        assert result.next_at is not None
        if result.next_at > now:
            break
    assert sizes == [100, 81]
    assert fired == [now - timedelta(minutes=180 - each) for each in range(181)]
    assert missed == 59, "the hour before"


@pytest.mark.requirement("N2")
def test_a_year_of_missed_seconds_costs_a_bounded_number_of_steps() -> None:
    now = T0 + timedelta(days=366, microseconds=5)
    result = due(a_definition(timing=Cron("* * * * * *")), T0, T0, now)
    assert result.ticks == (Tick(T0 + timedelta(days=366), missed=TICKS_LIMIT),)
    assert result.next_at == T0 + timedelta(days=366, seconds=1)


def test_an_end_is_the_last_tick_and_then_nothing_is_looked_at() -> None:
    definition = a_definition(ends_at=T0 + 2 * HOUR)
    result = due(definition, T0, T0, T0 + 5 * HOUR)
    assert result.ticks == (Tick(T0 + 2 * HOUR, missed=1),)
    assert result.next_at is None
    assert look_at(definition, T0, T0 + 2 * HOUR, T0) is None


@pytest.mark.requirement("N3")
def test_a_rare_schedule_is_looked_at_daily_because_laws_change_clocks() -> None:
    definition = a_definition(timing=Cron("0 0 1 7 *", "Europe/Berlin"))
    result = due(definition, T0, T0, T0 + LOOK_AHEAD)
    assert (result.ticks, result.counted_to) == ((), T0)
    assert result.next_at == T0 + 2 * LOOK_AHEAD


timings = st.sampled_from([Every(seconds=600), Every(hours=7), Cron("*/20 * * * *"),
    Cron("30 2 * * *", "Europe/Berlin"), Cron("0 0 * * *", "America/Santiago")])  # fmt: skip
definitions = st.builds(
    lambda timing, catch_up, within, ends: a_definition(
        timing=timing,
        catch_up=catch_up,
        within_seconds=None if catch_up == "none" else within,
        ends_at=None if ends is None else T0 + timedelta(hours=ends),
    ),
    timings,
    st.sampled_from(["last", "none", "all"]),
    st.none() | st.integers(60, 10 * 86400),
    st.none() | st.integers(1, 400),
)


@pytest.mark.requirement("N1", "N2")
@given(definition=definitions, steps=st.lists(st.integers(-86400, 86400), max_size=20))
def test_a_clock_that_jumps_both_ways_fires_no_tick_twice_and_forgets_none(
    definition: ScheduleDefinition, steps: list[int]
) -> None:
    now, counted_to = T0, T0
    next_at = look_at(definition, T0, counted_to, now)
    fired: list[datetime] = []
    missed, is_exact = 0, True
    for step in steps:
        now += timedelta(seconds=step)
        while next_at is not None and next_at <= now:
            result = due(definition, T0, counted_to, now)
            assert result.next_at is None or result.next_at > next_at, "it would look for ever"
            fired += [tick.at for tick in result.ticks]
            missed += result.missed
            is_exact &= result.missed < TICKS_LIMIT
            counted_to, next_at = result.counted_to, result.next_at
    ticks, _ = ticks_between(definition.timing, T0, counted_to, T0, 10_000)
    assert all(a < b for a, b in itertools.pairwise(fired)), "a tick was fired twice"
    assert set(fired) <= set(ticks)
    if is_exact:
        assert len(fired) + missed == len(ticks)


@given(chance=st.floats(0, 1, exclude_max=True), jitter=st.floats(1, 86400))
def test_jitter_never_reaches_the_next_tick(chance: float, jitter: float) -> None:
    tick = Tick(T0 + HOUR)
    starts = run_at(a_definition(jitter_seconds=jitter), tick, T0, chance)
    assert starts is not None
    assert tick.at <= starts <= tick.at + min(HOUR, timedelta(seconds=jitter))
    assert run_at(a_definition(), tick, T0, chance) is None


@pytest.mark.requirement("N2")
def test_each_overlap_policy_is_a_guarantee_that_the_store_already_has() -> None:
    assert job_of(a_definition()).unique_key == "schedule:books"
    assert job_of(a_definition(overlap="allow")).unique_key is None
    for overlap in ("queue", "cancel"):
        job = job_of(a_definition(overlap=overlap))
        assert (job.target, job.unique_key) == ("schedule:books", None)
        assert not job.policy.blocks_lane(has_lane=True)
        assert not job.policy.pauses_on_drain(has_lane=True)
        assert not job.policy.pauses_on_cancel(has_lane=True)
    secret = NewJob(task="t", policy=Policy(secret_args=("password",)))
    assert job_of(a_definition(overlap="queue", job=secret)).policy.secret_args == ("password",)
    assert job_of(a_definition()).tags == ("schedule:books",)


def test_the_tick_travels_with_the_job() -> None:
    tick = Tick(T0, missed=3)
    text = json_text(packed_policy(Policy(on_drain="pause"), tick))
    assert tick_of(text) == tick
    assert tick_of(None) is None
    assert tick_of('{"tick": "nonsense"}') is None
    assert tick_of('{"on_drain": "pause"}') is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "a b"}, "not a usable name"),
        ({"name": "n" * 91}, "at most 90"),
        ({"timing": "0 7 * * *"}, "Cron"),
        ({"overlap": "maybe"}, "choose one of skip, allow, queue, cancel"),
        ({"catch_up": "some"}, "choose one of last, none, all"),
        ({"catch_up": "none", "within_seconds": 60}, "within= is for"),
        ({"within_seconds": 0}, "1 second"),
        ({"jitter_seconds": -1}, "jitter"),
        ({"ends_at": datetime(2030, 1, 1)}, "time zone"),  # noqa: DTZ001
        ({"job": "shop.close"}, "prepare"),
        ({"job": NewJob(task="t", unique_key="k")}, "overlap= decides"),
        ({"job": NewJob(task="t", idempotency_key="k")}, "overlap= decides"),
        ({"job": NewJob(task="t", run_at=T0)}, "leave out run_at"),
        ({"job": NewJob(task="t", delay_seconds=5)}, "leave out run_at and delay"),
        ({"job": NewJob(task="t", target="x"), "overlap": "queue"}, "leave out target"),
    ],
)
def test_a_contradiction_is_refused_when_it_is_declared(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        a_definition(**changes)


@given(definition=definitions)
def test_a_stored_definition_is_read_back_equal(definition: ScheduleDefinition) -> None:
    assert from_text("books", to_text(definition)) == definition


def test_a_definition_of_a_newer_version_or_a_broken_one_is_an_error_not_a_crash() -> None:
    for text in ("", "[]", "{}", '{"job": {}, "args": "{}"}', '{"job":{"task":"t"},"args":"{}"}'):
        with pytest.raises(BadInput):
            from_text("books", text)


def test_no_field_of_a_job_is_lost_in_a_schedule() -> None:
    """A new field of NewJob is stored with schedules (StoredJob), or refused by `_check_job`."""
    refused = {"run_at", "delay_seconds", "unique_key", "idempotency_key", "pending", "waiting"}
    ignored = {"idempotency_seconds"}
    fields = set(NewJob.__struct_fields__)
    assert fields == set(StoredJob.__struct_fields__) | refused | ignored
