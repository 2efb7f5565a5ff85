"""Amending and cloning by forms: first the values, then what they lead to, then it is done."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from freehold.model.private_names import MASKED, masked, unmasked
from freehold.model.state import State
from freehold.store.types import JobFilter
from tests.dashboard.browser_client import BrowserClient, text_of

pytestmark = pytest.mark.requirement("N14")


def add(board: BrowserClient, task: str = "greet", argument: str = "ann") -> int:
    job_id: int = board.app.tasks.get(task).using(delay=3600).enqueue(argument).id
    return job_id


def test_amending_shows_the_values_before_and_after_and_then_changes_them(
    board: BrowserClient,
) -> None:
    job_id, visitor = add(board), board.visitor()
    before = board.app.operator.show(job_id).job
    assert "What will happen" not in visitor.page(f"/jobs/{job_id}/amend")
    page = visitor.page(f"/jobs/{job_id}/amend?priority=7&queue=mail&max_attempts=&run_at=")
    text = text_of(page)
    assert "before and after Value Now Then Priority 0 7 Queue default mail" in text
    assert f"freehold job amend {job_id} --priority=7 --to-queue=mail" in text
    assert board.app.operator.show(job_id).job == before
    fields = {"priority": "7", "queue": "mail", "reason": "urgent"}
    assert f"Job {job_id} is amended." in visitor.done(f"/jobs/{job_id}/amend", fields)
    job = board.app.operator.show(job_id).job
    assert (job.priority, job.queue, job.run_at) == (7, "mail", before.run_at)
    (entry,) = board.app.operator.audit().entries
    assert (entry.verb, entry.via, entry.reason) == ("amend", "dashboard", "urgent")


def test_a_delay_is_shown_as_the_time_that_it_leads_to(board: BrowserClient) -> None:
    """The time of the preview is what the form writes, however long a person looks at it."""
    job_id, visitor = add(board), board.visitor()
    page = visitor.page(f"/jobs/{job_id}/amend?delay_seconds=60")
    run_at = re.findall(r'type="hidden" name="run_at" value="([^"]*)"', page)[0]
    visitor.done(f"/jobs/{job_id}/amend", {"run_at": run_at})
    job = board.app.operator.show(job_id).job
    assert job.run_at.isoformat() == run_at
    assert abs(job.run_at - job.created_at) < timedelta(minutes=30)


def test_an_amendment_that_is_refused_changes_nothing(board: BrowserClient) -> None:
    visitor = board.visitor()
    done = board.app.tasks.get("greet").enqueue("x").id
    board.work()
    for path in (f"/jobs/{done}/amend?priority=1", f"/jobs/{add(board)}/amend?priority=x"):
        assert visitor.get(path).status_code == 422
    assert "only a waiting job" in visitor.get(f"/jobs/{done}/amend?priority=1").text
    assert visitor.post(f"/jobs/{done}/amend", {"priority": "1"}).status_code == 422
    assert visitor.post(f"/jobs/{done}/amend").status_code == 422
    assert board.app.operator.audit().entries == ()


def test_a_clone_has_the_old_arguments_without_showing_them(board: BrowserClient) -> None:
    job_id, visitor = add(board, argument="a value of ann"), board.visitor()
    page = visitor.page(f"/jobs/{job_id}/clone")
    preview = visitor.post(f"/jobs/{job_id}/clone/preview", {"priority": "3"}).text
    assert f"Arguments those of job {job_id}" in text_of(preview)
    assert "a value of ann" not in page + preview
    assert len(board.app.operator.jobs(JobFilter()).jobs) == 1
    visitor.done(f"/jobs/{job_id}/clone", {"priority": "3", "reason": "again"})
    made = board.app.operator.jobs(JobFilter()).jobs[0]
    old = board.app.operator.show(job_id).job
    assert (made.args, made.priority, made.meta) == (old.args, 3, {"cloned_from": job_id})
    assert [entry.verb for entry in board.app.operator.audit().entries] == ["clone"]


def test_edited_arguments_are_shown_on_request_checked_and_used(board: BrowserClient) -> None:
    job_id, visitor = add(board, argument="a value of ann"), board.visitor()
    shown = visitor.post(f"/jobs/{job_id}/clone/arguments").text
    assert "a value of ann" in shown
    wrong = visitor.post(f"/jobs/{job_id}/clone/preview", {"args": '{"nam": 1}'})
    assert wrong.status_code == 422
    assert "What will happen" not in text_of(wrong.text)
    assert visitor.post(f"/jobs/{job_id}/clone", {"args": "[1]"}).status_code == 422
    assert len(board.app.operator.jobs(JobFilter()).jobs) == 1
    args = '{"name": "bob", "times": 2}'
    preview = text_of(visitor.post(f"/jobs/{job_id}/clone/preview", {"args": args}).text)
    assert "as edited; they fit the task" in preview
    assert f"freehold job clone {job_id} --args '{{…}}'" in preview
    visitor.done(f"/jobs/{job_id}/clone", {"args": args})
    board.work()
    made = board.app.operator.jobs(JobFilter(states=frozenset({State.SUCCEEDED}))).jobs[0]
    assert made.report is not None
    assert made.report.result == "hello bobhello bob"
    verbs = [entry.verb for entry in board.app.operator.audit().entries]
    assert verbs == ["clone", "show_private"]


def test_a_masked_argument_keeps_its_value_unless_it_is_replaced(board: BrowserClient) -> None:
    job_id, visitor = add(board, "broken", "a private value"), board.visitor()
    shown = visitor.post(f"/jobs/{job_id}/clone/arguments").text
    assert "a private value" not in shown
    visitor.done(f"/jobs/{job_id}/clone", {"args": f'{{"secret": "{MASKED}"}}'})
    visitor.done(f"/jobs/{job_id}/clone", {"args": '{"secret": "another"}'})
    made = board.app.operator.jobs(JobFilter(task="broken")).jobs
    assert made[0].args == '{"secret":"another"}'
    assert made[1].args == '{"secret":"a private value"}'


def test_unmasking_is_the_inverse_of_masking() -> None:
    stored = {"token": "t", "to": [{"password": "p", "n": 1}, {"pin": 4}], "plain": MASKED}
    assert unmasked(masked(stored), stored) == stored
    assert unmasked({"token": "u", "new": MASKED}, stored) == {"token": "u", "new": MASKED}
