"""Groups of tasks: defined before there is an app, and included later."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from freehold import (
    BadArguments,
    BadName,
    BadSettings,
    Context,
    Every,
    Freehold,
    JobHandle,
    Limit,
    TaskGroup,
)
from freehold.schedules import TaskOptions
from tests.client.helpers import jobs_of


def billing() -> tuple[TaskGroup, list[tuple[str, int]]]:
    group, ran = TaskGroup(queue="bills", prefix="billing"), list[tuple[str, int]]()

    @group.task
    def charge(ctx: Context, account: str, cents: int = 1) -> None:
        ran.append((ctx.job.task, cents))

    @group.task(name="refund", queue="slow")
    async def give_back(cents: int) -> None:
        ran.append(("refund", cents))

    return group, ran


def test_tasks_of_an_included_group_run_like_those_of_the_app(app: Freehold) -> None:
    group, ran = billing()
    app.include(group)
    refund = group.tasks.get("billing.refund")
    assert (refund.options.queue, len(app.tasks.names)) == ("slow", 2)
    charge = next(task for task in app.tasks if task is not refund)
    jobs = [refund.enqueue(5), charge.using(priority=3).enqueue("ann", cents=7)]
    app.enqueue_many([charge.prepare("bob")])
    assert app.run_worker(until_idle=True) == 0
    assert {str(job.read().state) for job in jobs} == {"succeeded"}
    assert sorted(ran) == [(charge.name, 1), (charge.name, 7), ("refund", 5)]
    assert {job.queue for job in jobs_of(app)} == {"bills", "slow"}


def test_a_task_that_is_defined_after_its_group_was_included_is_known_to_the_app(
    sqlite_app: Freehold,
) -> None:
    group = TaskGroup()
    sqlite_app.include(group)

    @group.task(name="late")
    def late(number: int, *, text: str = "") -> None: ...

    job: JobHandle = late.enqueue(5, text="typed")
    with pytest.raises(BadArguments):
        late.enqueue("five")  # type: ignore[arg-type]
    assert job.read().task == sqlite_app.tasks.get("late").name


@pytest.mark.parametrize("prefix", [None, "shop"])
def test_names_have_the_prefix_in_place_of_the_module(prefix: str | None) -> None:
    group = TaskGroup(prefix=prefix)

    @group.task
    def own() -> None: ...

    @group.task(name="given")
    def other() -> None: ...

    place = "test_names_have_the_prefix_in_place_of_the_module.own"
    expected = {f"{prefix or __name__}.{place}", f"{prefix}.given" if prefix else "given"}
    assert set(group.tasks.names) == expected


def test_a_group_that_no_app_includes_refuses_to_enqueue(sqlite_app: Freehold) -> None:
    group, _ = billing()
    refund = group.tasks.get("billing.refund")
    with pytest.raises(BadSettings, match=r"billing\.refund .* app\.include"):
        refund.enqueue(1)
    with pytest.raises(BadSettings, match=r"app\.include"):
        asyncio.run(refund.using(delay=5).aenqueue(1))
    sqlite_app.include(group)
    assert refund.enqueue(1).created


def test_a_group_belongs_to_one_app(sqlite_app: Freehold) -> None:
    group, _ = billing()
    sqlite_app.include(group)
    sqlite_app.include(group)  # again is no error
    other = Freehold("sqlite://:memory:")
    with pytest.raises(BadSettings, match="another app already"):
        other.include(group)
    assert other.tasks.names == []


def test_a_group_with_a_name_that_the_app_has_already_is_refused_as_a_whole(
    sqlite_app: Freehold,
) -> None:
    @sqlite_app.task(name="billing.refund")
    def unlike() -> None: ...

    group, _ = billing()
    with pytest.raises(BadSettings, match=r"two tasks are called billing\.refund"):
        sqlite_app.include(group)
    assert sqlite_app.tasks.names == ["billing.refund"]
    with pytest.raises(BadSettings, match="no app includes"):
        group.tasks.get("billing.refund").enqueue(1)


@pytest.mark.parametrize("wrong", [{"queue": "a b"}, {"prefix": ""}, {"prefix": "a/b"}])
def test_a_group_with_an_unusable_name_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(BadName):
        TaskGroup(**wrong)


def test_the_schedules_of_a_group_are_those_of_the_app_that_includes_it(app: Freehold) -> None:
    group = TaskGroup(prefix="reports")

    @group.cron("0 7 * * *", zone="Europe/Berlin", name="daily", limit=Limit(1))
    def daily() -> None: ...

    app.include(group)

    @group.cron("0 8 * * *", name="late")
    async def late(ctx: Context) -> None: ...

    group.schedule("thrice", Every(hours=8), daily.prepare())
    assert app.run_worker(until_idle=True) == 0
    found = {each.name: each.task for each in app.operator.schedules()}
    assert found == {
        "reports.daily": "reports.daily",
        "reports.late": "reports.late",
        "thrice": "reports.daily",
    }


def test_a_group_whose_schedule_has_a_name_of_the_app_is_refused(sqlite_app: Freehold) -> None:
    group = TaskGroup()
    for maker, hour in ((sqlite_app, 7), (group, 8)):
        maker.cron(f"0 {hour} * * *", name=f"task-{hour}", schedule="daily")(lambda: None)
    with pytest.raises(BadSettings, match="two schedules are called daily"):
        sqlite_app.include(group)
    assert sqlite_app.tasks.names == ["task-7"]


def test_cron_takes_every_option_of_a_task() -> None:
    given = inspect.signature(TaskGroup.task).parameters.values()
    names = {each.name for each in given if each.kind is inspect.Parameter.KEYWORD_ONLY}
    assert names == set(TaskOptions.__annotations__)
