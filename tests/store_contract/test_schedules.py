"""Schedules in both stores: one job for each tick, whatever happens between read and write."""

from __future__ import annotations

from collections.abc import Callable, Generator
from datetime import datetime, timedelta
from typing import Any

import pytest

from freehold.errors import BadInput, Refused
from freehold.model import schedule_changes
from freehold.model.job import Enqueued, NewJob
from freehold.model.outcome import OutcomeKind
from freehold.model.policy import Policy
from freehold.model.schedule import ScheduleDefinition, Tick, tick_of
from freehold.model.schedule_changes import Schedule
from freehold.model.timing import Cron, Every
from freehold.store.statements import Conflict, StatementGroup, run
from freehold.store.types import Firing
from freehold.store.verbs.fire import fire_schedules, make_jobs
from tests.stores import StoreUnderTest

HOUR = 3600.0
APP = "shop.app"


def a_definition(name: str = "books", **changes: Any) -> ScheduleDefinition:
    values: dict[str, Any] = {"timing": Every(hours=1), "job": NewJob(task="t")}
    return ScheduleDefinition(**{"name": name, **values, **changes})


def put(store: StoreUnderTest, name: str = "books", **changes: Any) -> Schedule:
    return store.store.put_schedule(a_definition(name, **changes), "ann")


def stored(store: StoreUnderTest, name: str = "books") -> Schedule:
    schedule = store.store.read_schedule(name)
    assert schedule is not None
    return schedule


def fire(store: StoreUnderTest, limit: int = 100, chance: float = 0.5) -> Firing:
    return store.store.fire_schedules(limit, chance)


def jobs(store: StoreUnderTest) -> list[int]:
    return [row[0] for row in store.sql("select id from {s}job order by id")]


def ticks(store: StoreUnderTest) -> list[datetime]:
    found = [tick_of(store.job(job_id).policy_json) for job_id in jobs(store)]
    return [tick.at for tick in found if tick is not None]


def pause(store: StoreUnderTest, until: datetime | None = None) -> None:
    store.store.change_schedule(
        "books", lambda each, now: schedule_changes.paused(each, now, "ann", "a reason", until)
    )


def resume(store: StoreUnderTest) -> None:
    store.store.change_schedule("books", schedule_changes.resumed)


# -- one job for each tick -------------------------------------------------------------------


@pytest.mark.requirement("N1")
def test_a_new_schedule_fires_at_its_next_tick_and_never_at_once(store: StoreUnderTest) -> None:
    began = store.now()
    put(store)
    assert fire(store) == Firing()
    store.advance(HOUR - 1)
    assert fire(store) == Firing()
    store.advance(1)
    assert fire(store) == Firing(seen=1, fired=1)
    assert fire(store) == Firing()
    assert ticks(store) == [began + timedelta(hours=1)]
    schedule = stored(store)
    assert schedule.last_job == jobs(store)[0]
    assert schedule.last_at == began + timedelta(hours=1)
    assert schedule.fired == 1


@pytest.mark.requirement("N1")
def test_the_job_of_a_tick_is_complete(store: StoreUnderTest) -> None:
    job = NewJob(
        task="shop.sync",
        args=b'{"customer":7}',
        queue="slow",
        priority=5,
        limit_key="crm",
        max_attempts=3,
        timeout_seconds=30.0,
        tags=("crm",),
        policy=Policy(on_drain="pause"),
        meta_json='{"team":"books"}',
    )
    put(store, job=job)
    store.advance(3 * HOUR)
    fire(store)
    made = store.job(jobs(store)[0])
    assert (made.task, made.args, made.queue, made.priority) == (
        "shop.sync",
        '{"customer":7}',
        "slow",
        5,
    )
    assert (made.limit_key, made.max_attempts, made.timeout_seconds) == ("crm", 3, 30.0)
    assert made.tags == ("crm", "schedule:books")
    assert made.unique_key == "schedule:books"
    assert made.policy.on_drain == "pause"
    assert made.meta == {"team": "books"}
    assert tick_of(made.policy_json) == Tick(store.now(), missed=2)
    attempt = store.claim_one(queue="slow")
    assert tick_of(attempt.policy_json) == Tick(store.now(), missed=2)


def interrupted(store: StoreUnderTest, between: Callable[[], object], limit: int = 100) -> Firing:
    """A sweep that is frozen between its read and its write."""
    steps: Generator[StatementGroup, Any, Firing] = fire_schedules(limit, 0.5)
    session = store.store.session
    group = next(steps)
    answers = session.execute(group)
    between()
    group = steps.send(answers)

    def rest() -> Generator[StatementGroup, Any, Firing]:
        nonlocal group
        try:
            while True:
                answers = yield group
                group = steps.send(answers)
        except StopIteration as end:
            result: Firing = end.value
            return result

    return run(rest(), session)


@pytest.mark.requirement("N1")
def test_a_sweeper_frozen_between_read_and_write_fires_no_second_job(
    store: StoreUnderTest,
) -> None:
    put(store, overlap="allow")
    store.advance(HOUR)
    assert interrupted(store, lambda: fire(store)).fired == 0
    assert len(jobs(store)) == 1
    assert stored(store).fired == 1


@pytest.mark.requirement("N1")
def test_a_sweeper_frozen_for_several_ticks_fires_none_of_them_again(
    store: StoreUnderTest,
) -> None:
    put(store, overlap="allow", catch_up="all")
    store.advance(HOUR)

    def three_hours() -> None:
        for _ in range(3):
            fire(store)
            store.advance(HOUR)

    interrupted(store, three_hours)
    fire(store)
    assert len(ticks(store)) == len(set(ticks(store))) == 4


@pytest.mark.requirement("N1")
@pytest.mark.parametrize("change", ["edit", "pause", "drop", "replace"])
def test_a_frozen_sweeper_does_not_fire_what_was_changed_meanwhile(
    store: StoreUnderTest, change: str
) -> None:
    put(store, overlap="allow")
    store.advance(HOUR)

    def edit() -> None:
        if change in ("drop", "replace"):
            assert store.store.drop_schedule("books")
        if change in ("edit", "replace"):
            put(store, timing=Every(hours=2))
        if change == "pause":
            pause(store)

    assert interrupted(store, edit) == Firing(seen=1)
    assert jobs(store) == []


@pytest.mark.requirement("N1", "P11")
def test_a_clock_going_back_does_not_fire_twice(store: StoreUnderTest) -> None:
    put(store, overlap="allow")
    store.advance(HOUR)
    fire(store)
    store.advance(-HOUR)
    assert fire(store) == Firing()
    put(store, overlap="allow", timing=Every(minutes=1))
    pause(store)
    resume(store)
    for _ in range(60):
        store.advance(60)
        assert fire(store) == Firing(), "before the time up to which ticks were counted"
    store.advance(60)
    assert fire(store).fired == 1


@pytest.mark.requirement("N1")
def test_a_clock_that_jumps_ahead_and_comes_back_fires_each_tick_once(
    store: StoreUnderTest,
) -> None:
    put(store, overlap="allow", catch_up="all")
    store.advance(24 * HOUR)
    fire(store)
    store.advance(-24 * HOUR)
    for _ in range(30):
        store.advance(HOUR)
        fire(store)
    assert len(ticks(store)) == len(set(ticks(store))) == 30


@pytest.mark.requirement("N1")
def test_many_due_schedules_are_fired_in_bounded_batches(store: StoreUnderTest) -> None:
    for number in range(7):
        put(store, f"s{number}")
    store.advance(HOUR)
    assert [fire(store, limit=3).fired for _ in range(4)] == [3, 3, 1, 0]


# -- catch-up and overlap --------------------------------------------------------------------


@pytest.mark.requirement("N2")
def test_missed_ticks_are_counted_and_make_one_job(store: StoreUnderTest) -> None:
    put(store)
    store.advance(5.5 * HOUR)
    assert fire(store) == Firing(seen=1, fired=1, missed=4)
    assert stored(store).missed == 4


@pytest.mark.requirement("N2")
def test_all_missed_ticks_make_their_jobs_in_order(store: StoreUnderTest) -> None:
    began = store.now()
    put(store, catch_up="all", overlap="queue")
    store.advance(5.5 * HOUR)
    assert fire(store).fired == 5
    assert ticks(store) == [began + timedelta(hours=each) for each in range(1, 6)]
    assert [attempt.job_id for attempt in store.claim()] == jobs(store)[:1], "one at a time"


@pytest.mark.requirement("N2")
def test_a_skip_is_counted_with_the_job_that_it_waited_for(store: StoreUnderTest) -> None:
    put(store)
    store.advance(HOUR)
    fire(store)
    (first,) = jobs(store)
    store.advance(HOUR)
    assert fire(store) == Firing(seen=1, skipped=1)
    schedule = stored(store)
    assert (schedule.skipped, schedule.skipped_for, schedule.skipped_at) == (1, first, store.now())
    assert (schedule.fired, schedule.last_job) == (1, first)
    store.end(store.claim_one(), OutcomeKind.SUCCESS)
    store.advance(HOUR)
    assert fire(store).fired == 1


@pytest.mark.requirement("N2")
def test_a_catch_up_of_all_with_skip_makes_one_job_and_counts_the_others(
    store: StoreUnderTest,
) -> None:
    began = store.now()
    put(store, catch_up="all")
    store.advance(5 * HOUR)
    assert fire(store) == Firing(seen=1, fired=1, skipped=4)
    schedule = stored(store)
    assert schedule.skipped_for == schedule.last_job == jobs(store)[0]
    assert schedule.last_at == began + timedelta(hours=1)


@pytest.mark.requirement("N2")
def test_allow_lets_runs_overlap(store: StoreUnderTest) -> None:
    put(store, overlap="allow")
    for _ in range(3):
        store.advance(HOUR)
        fire(store)
    assert len(store.claim()) == 3


@pytest.mark.requirement("N2")
def test_queue_runs_one_after_another_and_a_failed_run_blocks_nothing(
    store: StoreUnderTest,
) -> None:
    put(store, overlap="queue", job=NewJob(task="t", max_attempts=1))
    for _ in range(2):
        store.advance(HOUR)
        fire(store)
    (attempt,) = store.claim()
    store.end(attempt, OutcomeKind.ERROR)
    assert store.state(attempt.job_id) == "failed"
    assert len(store.claim()) == 1


@pytest.mark.requirement("N2")
def test_cancel_asks_the_running_job_to_stop_and_ends_waiting_ones(store: StoreUnderTest) -> None:
    put(store, overlap="cancel")
    store.advance(HOUR)
    fire(store)
    running = store.claim_one(lease_seconds=10 * HOUR)
    for _ in range(2):
        store.advance(HOUR)
        fire(store)
    first, second, third = running.job_id, jobs(store)[-1] - 1, jobs(store)[-1]
    assert store.job(first).stop_request is not None
    assert store.state(second) == "canceled"
    assert store.state(third) == "queued"
    store.end(running, OutcomeKind.CANCEL)
    assert store.state(first) == "canceled"
    assert store.claim_one().job_id == third


@pytest.mark.requirement("N3")
def test_jitter_delays_the_job_and_not_the_tick(store: StoreUnderTest) -> None:
    put(store, jitter_seconds=600)
    store.advance(HOUR)
    tick = store.now()
    fire(store, chance=0.5)
    assert store.claim() == []
    assert store.job(jobs(store)[0]).run_at == tick + timedelta(seconds=300)
    store.advance(300)
    assert store.store.make_ready(10) == 1
    assert len(store.claim()) == 1
    assert ticks(store) == [tick]


@pytest.mark.requirement("N3")
def test_the_job_of_a_tick_must_start_by_its_time(store: StoreUnderTest) -> None:
    job = NewJob(task="t", start_by=300.0)
    put(store, job=job, jitter_seconds=600, catch_up="all", overlap="allow")
    store.advance(2 * HOUR)
    fire(store, chance=0.5)
    missed, jittered = map(store.job, jobs(store))
    assert missed.start_by == store.now() + timedelta(seconds=300), "counted from now"
    assert jittered.start_by == jittered.run_at + timedelta(seconds=300)
    put(store, job=job, overlap="allow")
    store.advance(HOUR)
    fire(store)
    at_once = store.job(jobs(store)[-1])
    assert at_once.start_by == store.now() + timedelta(seconds=300)
    with pytest.raises(BadInput, match="would be over after one tick"):
        a_definition(job=NewJob(task="t", start_by=store.now()))


# -- pausing and editing ---------------------------------------------------------------------


@pytest.mark.requirement("N3")
def test_the_ticks_of_a_pause_make_no_jobs_when_it_ends(store: StoreUnderTest) -> None:
    put(store, catch_up="all")
    pause(store)
    schedule = stored(store)
    assert (schedule.paused_by, schedule.pause_reason) == ("ann", "a reason")
    assert schedule.next_at is None
    store.advance(5.5 * HOUR)
    assert fire(store) == Firing()
    resume(store)
    assert fire(store) == Firing()
    store.advance(0.5 * HOUR)
    assert fire(store) == Firing(seen=1, fired=1)


@pytest.mark.requirement("N3")
def test_a_pause_until_a_time_ends_by_itself_and_skips_its_ticks(store: StoreUnderTest) -> None:
    began = store.now()
    put(store, catch_up="all", overlap="allow")
    pause(store, began + timedelta(hours=3))
    store.advance(2.5 * HOUR)
    assert fire(store) == Firing()
    store.advance(0.5 * HOUR)
    assert fire(store) == Firing(seen=1, fired=1), "the tick at the end of the pause"
    assert ticks(store) == [began + timedelta(hours=3)]
    assert stored(store).paused_at is None


@pytest.mark.requirement("N3")
def test_a_pause_until_a_time_can_end_earlier(store: StoreUnderTest) -> None:
    began = store.now()
    put(store)
    pause(store, began + timedelta(hours=5))
    store.advance(HOUR * 1.5)
    resume(store)
    store.advance(HOUR * 0.5)
    assert fire(store) == Firing(seen=1, fired=1)


@pytest.mark.requirement("N1", "N3")
def test_an_edit_never_fires_backwards(store: StoreUnderTest) -> None:
    put(store, timing=Cron("0 0 1 1 *"))
    store.advance(10 * HOUR)
    put(store, timing=Cron("*/5 * * * *"), catch_up="all", overlap="allow")
    assert fire(store) == Firing()
    store.advance(300)
    assert fire(store).fired == 1


@pytest.mark.requirement("N1", "N3")
def test_an_edit_of_anything_but_the_time_costs_no_due_tick(store: StoreUnderTest) -> None:
    put(store)
    store.advance(HOUR)
    put(store, job=NewJob(task="t", priority=9))
    assert fire(store) == Firing(seen=1, fired=1)
    assert store.job(jobs(store)[0]).priority == 9


def test_a_schedule_without_a_tick_before_its_end_is_refused(store: StoreUnderTest) -> None:
    before = store.everything()
    with pytest.raises(BadInput, match="ends before its first tick"):
        put(store, ends_at=store.now() + timedelta(minutes=1))
    assert store.everything() == before


def test_a_schedule_ends(store: StoreUnderTest) -> None:
    put(store, ends_at=store.now() + timedelta(hours=2), overlap="allow")
    for _ in range(5):
        store.advance(HOUR)
        fire(store)
    assert len(jobs(store)) == 2
    assert stored(store).next_at is None


def test_a_change_of_a_schedule_that_does_not_exist_is_refused(store: StoreUnderTest) -> None:
    with pytest.raises(Refused, match="no schedule books"):
        resume(store)
    assert store.store.drop_schedule("books") is False


def test_two_backfills_of_one_tick_at_once_make_one_job(store: StoreUnderTest) -> None:
    """The database refuses the second one, when the first has been committed."""
    tick = Tick(store.now())

    def backfill() -> Generator[StatementGroup, Any, list[Enqueued]]:
        return make_jobs(a_definition(), [tick], is_backfill=True)

    def refused_once() -> Generator[StatementGroup, Any, list[Enqueued]]:
        steps = backfill()
        next(steps)
        run(backfill(), store.store.session)
        group = steps.throw(Conflict("idempotency_pkey"))
        try:
            while True:
                group = steps.send((yield group))
        except StopIteration as end:
            made: list[Enqueued] = end.value
            return made

    (second,) = run(refused_once(), store.store.session)
    assert not second.created
    assert jobs(store) == [second.id]


# -- declarations ----------------------------------------------------------------------------


def declare(store: StoreUnderTest, *definitions: ScheduleDefinition, app: str = APP) -> list[str]:
    return store.store.declare_schedules(app, definitions)


@pytest.mark.requirement("N3")
def test_a_second_worker_with_the_same_code_changes_nothing(store: StoreUnderTest) -> None:
    assert declare(store, a_definition(), a_definition("other")) == ["books", "other"]
    before = store.everything()
    store.advance(60)
    assert declare(store, a_definition("other"), a_definition()) == []
    assert store.everything() == before


@pytest.mark.requirement("N3")
def test_an_edit_by_a_person_survives_a_deploy_until_the_code_changes(
    store: StoreUnderTest,
) -> None:
    declare(store, a_definition())
    put(store, timing=Every(hours=2))
    assert declare(store, a_definition()) == []
    schedule = stored(store)
    assert schedule.definition is not None
    assert schedule.definition.timing == Every(hours=2)
    assert (schedule.is_edited, schedule.edited_by) == (True, "ann")
    assert declare(store, a_definition(timing=Every(hours=3))) == ["books"]
    schedule = stored(store)
    assert schedule.definition is not None
    assert schedule.definition.timing == Every(hours=3)
    assert not schedule.is_edited


@pytest.mark.requirement("N3")
def test_reset_goes_back_to_the_code(store: StoreUnderTest) -> None:
    declare(store, a_definition())
    put(store, timing=Every(hours=2))
    schedule = store.store.reset_schedule("books")
    assert schedule.definition == a_definition()
    assert not stored(store).is_edited
    put(store, "mine")
    with pytest.raises(Refused, match="no app declares"):
        store.store.reset_schedule("mine")


@pytest.mark.requirement("N3")
def test_a_pause_by_a_person_survives_a_change_of_the_code(store: StoreUnderTest) -> None:
    declare(store, a_definition())
    pause(store)
    declare(store, a_definition(timing=Every(hours=3)))
    schedule = stored(store)
    assert schedule.paused_by == "ann"
    assert schedule.next_at is None


@pytest.mark.requirement("N3")
def test_what_an_app_no_longer_declares_is_paused_with_that_reason(store: StoreUnderTest) -> None:
    declare(store, a_definition(), a_definition("other"))
    assert declare(store, a_definition("other")) == ["books"]
    schedule = stored(store)
    assert schedule.pause_reason == "the app shop.app no longer declares it"
    assert schedule.next_at is None
    assert stored(store, "other").paused_at is None
    assert declare(store, a_definition("other")) == [], "and not again at each start"
    declare(store, a_definition("other"), a_definition())
    assert stored(store).paused_at is None
    assert stored(store).next_at is not None


@pytest.mark.requirement("N3")
def test_the_declarations_of_one_app_never_touch_those_of_another(store: StoreUnderTest) -> None:
    put(store, "by-hand")
    declare(store, a_definition(), app="shop.app")
    before = store.everything()["schedule"]
    declare(store, a_definition("theirs"), app="mail.app")
    declare(store, app="mail.app")
    declare(store, app="third.app")
    after = [row for row in store.everything()["schedule"] if row[0] != "theirs"]
    assert after == before


@pytest.mark.requirement("N3")
def test_one_name_for_two_tasks_is_refused_and_nothing_is_written(store: StoreUnderTest) -> None:
    declare(store, a_definition(), app="shop.app")
    before = store.everything()
    with pytest.raises(BadInput, match=r"another task, t, declared by the app shop\.app"):
        declare(store, a_definition("new"), a_definition(job=NewJob(task="other")), app="mail.app")
    assert store.everything() == before


@pytest.mark.requirement("N3")
def test_an_app_under_a_new_name_takes_over_the_same_task(store: StoreUnderTest) -> None:
    declare(store, a_definition(), app="shop.old")
    declare(store, a_definition(), app="shop.new")
    declare(store, app="shop.old")
    schedule = stored(store)
    assert (schedule.declared_by, schedule.paused_at) == ("shop.new", None)


def test_an_operator_who_resumes_an_undeclared_schedule_keeps_it(store: StoreUnderTest) -> None:
    declare(store, a_definition())
    declare(store)
    resume(store)
    declare(store)
    schedule = stored(store)
    assert (schedule.paused_at, schedule.declared_by) == (None, None)


def test_an_undeclared_schedule_is_deleted_after_a_week(store: StoreUnderTest) -> None:
    declare(store, a_definition(), a_definition("other"))
    declare(store, a_definition("other"))
    store.advance(6.9 * 86400)
    while store.store.apply_retention(14.0, 100):
        pass
    assert len(store.store.schedules()) == 2
    assert not store.store.retention_is_due(14.0)
    store.advance(0.2 * 86400)
    assert store.store.retention_is_due(14.0)
    while store.store.apply_retention(14.0, 100):
        pass
    assert [each.name for each in store.store.schedules()] == ["other"]


def test_a_declaration_whose_end_has_passed_keeps_no_other_out_of_a_new_store(
    store: StoreUnderTest,
) -> None:
    over = a_definition("over", ends_at=store.now() - timedelta(days=1))
    assert declare(store, over, a_definition()) == ["books"]
    assert store.store.read_schedule("over") is None


# -- what cannot be fired --------------------------------------------------------------------


def test_a_definition_that_cannot_be_read_is_shown_and_holds_up_no_other(
    store: StoreUnderTest,
) -> None:
    put(store, "a", timing=Cron("0 * * * *", "Europe/Berlin"))
    put(store, "b")
    store.sql(
        'update {s}schedule set definition = \'{"job":{"task":"t"},"cron":"0 * * * *",'
        '"zone":"Mars/Base"}\' where name = \'a\''
    )
    store.advance(2 * HOUR)
    result = fire(store)
    assert (result.seen, result.fired) == (2, 1)
    assert "Mars/Base" in result.problems[0]
    assert "Mars/Base" in (stored(store, "a").problem or "")
    assert fire(store) == Firing(), "it is tried again later"
    store.advance(60)
    assert fire(store).seen == 1


def test_a_job_that_the_database_refuses_holds_up_no_other(store: StoreUnderTest) -> None:
    put(store, "a")
    put(store, "b")
    store.sql(
        'update {s}schedule set definition = \'{"job":{"task":"t","max_attempts":-1},'
        "\"every_seconds\":3600}' where name = 'a'"
    )
    store.advance(HOUR)
    result = fire(store)
    assert (result.seen, result.fired) == (2, 1)
    assert stored(store, "a").problem
    assert stored(store, "b").fired == 1


@pytest.mark.requirement("N3")
def test_a_schedule_that_is_postponed_at_the_end_of_its_pause_does_not_fire_the_ticks_of_the_pause(
    store: StoreUnderTest,
) -> None:
    began = store.now()
    put(store, catch_up="all", overlap="allow")
    text = stored(store).text
    pause(store, began + timedelta(hours=3))
    store.sql("update {s}schedule set definition = '{\"every_seconds\":3600}'")
    store.advance(3 * HOUR)
    assert fire(store).problems
    store.sql(f"update {{s}}schedule set definition = '{text}'")
    store.advance(60)
    assert fire(store) == Firing(seen=1, fired=1)
    assert ticks(store) == [began + timedelta(hours=3)], "the tick at the end of the pause"


def test_a_sweep_finds_the_next_schedule_by_its_time(store: StoreUnderTest) -> None:
    assert store.store.sweep_check(()).schedule_seconds is None
    put(store)
    assert store.store.sweep_check(()).schedule_seconds == HOUR
    store.advance(2 * HOUR)
    assert store.store.sweep_check(()).schedule_seconds == 0.0
    pause(store)
    assert store.store.sweep_check(()).schedule_seconds is None


def test_schedules_are_listed_in_pages(store: StoreUnderTest) -> None:
    for name in ("c", "a", "b"):
        put(store, name)
    assert [each.name for each in store.store.schedules("", 2)] == ["a", "b"]
    assert [each.name for each in store.store.schedules("b", 2)] == ["c"]
