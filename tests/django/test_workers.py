"""Workers of the project as processes: `manage.py freehold worker`."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import psycopg
import pytest

from freehold import JobFilter, State
from tests.django.shop_project import LIMIT_SECONDS, Project, wait_for
from tests.sizes import sized

_LEASE = ("--lease-timeout-seconds", "2")


@pytest.mark.requirement("N18")
def test_a_task_whose_worker_is_killed_succeeds_after_the_lease(
    project: Project, tmp_path: Path
) -> None:
    project.migrate()
    started, release = tmp_path / "started", tmp_path / "release"
    started.touch()
    project.run(f"out(tasks.hold.enqueue({str(started)!r}, {str(release)!r}).id)")
    with project.started("freehold", "worker", *_LEASE) as worker:
        wait_for(started.read_text)
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
    with project.started("freehold", "worker", *_LEASE):
        (job,) = project.wait_for_ends()
    script = f"""
result = tasks.hold.get_result({str(job.id)!r})
out([result.status, result.attempts, len(set(result.worker_ids)),
     result.errors[0].exception_class.__name__, result.return_value])
"""
    assert project.run(script) == ["SUCCESSFUL", 2, 2, "LeaseLost", "done"]


@pytest.mark.requirement("N18")
def test_tasks_succeed_after_the_connection_of_the_orm_was_cut(postgres_project: Project) -> None:
    project = postgres_project
    project.migrate()
    project.run("tasks.backend_process.enqueue()")
    with (
        project.started("freehold", "worker", "--concurrency", "1"),
        psycopg.connect(project.database, autocommit=True) as connection,
    ):
        (first,) = project.wait_for_ends()
        assert first.report is not None
        cut = connection.execute("select pg_terminate_backend(%s)", [first.report.result])
        assert cut.fetchone() == (True,)
        project.run("tasks.backend_process.enqueue_many([()] * 6)")
        jobs = project.wait_for_ends()
    assert {job.state for job in jobs} == {State.SUCCEEDED}
    # The connection was open, and kept; one attempt has met it broken.
    assert sum(job.attempt - 1 for job in jobs) <= 1
    assert len({job.report.result for job in jobs if job.report}) == 2


@pytest.mark.requirement("N18")
def test_connections_do_not_grow_with_the_number_of_tasks(postgres_project: Project) -> None:
    project, concurrency = postgres_project, 4
    count = sized("DJANGO_TASKS", short=200, long=10_000)
    project.migrate()
    order = project.run("out(Order.objects.create(name='one').pk)")
    query = """select count(*) from pg_stat_activity
               where datname = current_database() and pid <> pg_backend_pid()"""
    seen: list[int] = []
    with (
        psycopg.connect(project.database, autocommit=True) as connection,
        project.started("freehold", "worker", "--concurrency", str(concurrency)),
    ):
        half = f"[({order},)] * {count // 2}"
        project.run(f"tasks.bill.enqueue_many({half}); tasks.bill_async.enqueue_many({half})")

        def is_done() -> bool:
            seen.append(connection.execute(query).fetchone()[0])  # type: ignore[index]
            counts = project.app.operator.counts()
            return not (counts.ready or counts.leased or counts.waiting)

        wait_for(is_done, seconds=LIMIT_SECONDS + count / 10)
    # Two for each slot (the ORM, and the store); those of the worker, its listener and this test.
    assert max(seen) <= 2 * concurrency + 16, seen
    states: Counter[State] = Counter()
    page = project.app.operator.jobs(JobFilter(limit=1000))
    states.update(job.state for job in page.jobs)
    while page.next is not None:
        page = project.app.operator.jobs(JobFilter(limit=1000, before=page.next))
        states.update(job.state for job in page.jobs)
    assert states == {State.SUCCEEDED: count + count // 2}  # each bill_async enqueues one more


@pytest.mark.requirement("N18")
@pytest.mark.either_store
def test_a_task_in_a_child_process_has_the_project(project: Project) -> None:
    project.migrate()
    project.run("tasks.in_child.enqueue()")
    project.manage("freehold", "worker", "--until-idle")
    (job,) = project.jobs()
    assert job.state is State.SUCCEEDED, job


@pytest.mark.either_store
def test_the_command_line_of_the_project(project: Project, tmp_path: Path) -> None:
    """From another folder, with wrong input, and with variables of another store."""
    output = project.manage("migrate", "--run-syncdb", cwd=tmp_path)
    assert "Freehold: schema of TASKS['default']: 0001" in output
    assert "Freehold" not in project.manage("migrate")
    project.run("tasks.add.enqueue(1, 2)")
    project.environment["FREEHOLD_URL"] = str(tmp_path / "other.db")
    output = project.manage("freehold", "jobs", "--settings=website.settings", cwd=tmp_path)
    assert "shop.tasks.add" in output
    assert "FREEHOLD_URL is ignored" in output
    assert not (tmp_path / "other.db").exists()
    assert "worker" in project.manage("freehold", "--help")
    assert "No such command" in project.manage("freehold", "wrok", code=2)
    refused = project.manage("freehold", "--backend", "other", "jobs", code=1)
    assert "TASKS has no backend 'other' of Freehold" in refused


@pytest.mark.either_store
def test_up_runs_the_tasks_of_the_project_from_another_folder(
    project: Project, tmp_path: Path
) -> None:
    project.migrate()
    project.run("tasks.add.enqueue_many([(number, 1) for number in range(20)])")
    with project.started(
        "freehold", "up", "--default-count", "2", "--max-count", "2", "--no-http", cwd=tmp_path
    ):
        jobs = project.wait_for_ends()
    assert {job.report.result for job in jobs if job.report} == set(range(1, 21))
