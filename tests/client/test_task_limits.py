"""`@app.task(limit=...)`: at most so many jobs of the task at a time, over all workers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from freehold import BadSettings, Freehold, Limit, Rate, TaskGroup


def test_no_more_jobs_of_a_task_run_at_a_time_than_it_declares(app: Freehold) -> None:
    running, seen = 0, []

    @app.task(name="shop.send", limit=Limit(2))
    async def send(number: int) -> None:
        nonlocal running
        running += 1
        seen.append(running)
        await asyncio.sleep(0.01)  # the others of the same claim start meanwhile
        running -= 1

    jobs = app.enqueue_many([send.prepare(number) for number in range(8)])
    assert app.run_worker(until_idle=True, concurrency=8) == 0
    assert {str(job.read().state) for job in jobs} == {"succeeded"}
    assert max(seen) == 2
    assert jobs[0].read().limit_key == "task:shop.send"
    assert [(each.name, each.limit) for each in app.operator.key_limits()] == [
        ("task:shop.send", Limit(2))
    ]


def test_a_restarted_worker_keeps_what_the_operator_has_set(app: Freehold) -> None:
    app.task(name="shop.send", limit=Limit(2))(lambda: None)
    assert app.run_worker(until_idle=True) == 0
    app.operator.set_key_limit("task:shop.send", Limit(9))
    assert app.run_worker(until_idle=True) == 0
    assert [each.limit for each in app.operator.key_limits()] == [Limit(9)]


def test_a_limit_holds_for_each_tenant_of_a_host(postgres_app: Freehold) -> None:
    app = postgres_app
    app.migrate()
    send = app.task(name="shop.send", limit=Limit(1, Rate(100, 60.0)))(lambda: None)
    for name in ("acme", "bolt"):
        app.tenants.create(name)
        send.using(tenant=name).enqueue()
    assert app.run_worker(tenants="all", until_idle=True) == 0
    for name in ("acme", "bolt"):
        rules = app.tenant(name).operator.key_limits()
        assert [(each.name, each.limit.max_leases) for each in rules] == [("task:shop.send", 1)]


def test_a_call_can_have_a_limit_key_of_its_own() -> None:
    group = TaskGroup(prefix="shop")
    send = group.task(name="send", limit=Limit(1))(lambda: None)
    plain = group.task(name="plain")(lambda: None)
    assert send.prepare().limit_key == "task:shop.send"
    assert send.using(limit_key="smtp").prepare().limit_key == "smtp"
    assert plain.prepare().limit_key is None


def test_a_limit_that_limits_nothing_is_refused() -> None:
    with pytest.raises(BadSettings, match="give the number of running jobs"):
        TaskGroup().task(limit=Limit())
    number: Any = 3
    with pytest.raises(BadSettings, match=r"limit=3: give a Limit"):
        TaskGroup().task(limit=number)
