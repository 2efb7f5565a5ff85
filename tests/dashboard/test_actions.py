"""Actions on jobs: what they would do, what they do, and what they refuse."""

from __future__ import annotations

import pytest

from freehold.dashboard.pages.actions import REASON_ABOVE
from freehold.model.private_names import value_text
from freehold.model.state import State
from freehold.store.types import JobFilter
from tests.dashboard.browser_client import BrowserClient, text_of
from tests.http.api_client import TOKENS

pytestmark = pytest.mark.requirement("N14", "N16")


def states(board: BrowserClient) -> dict[int, str]:
    return {job.id: job.state.value for job in board.app.operator.jobs(JobFilter(limit=500)).jobs}


def add(board: BrowserClient, number: int = 1) -> list[int]:
    greet = board.app.tasks.get("greet")
    return sorted(greet.enqueue("ann").id for _ in range(number))


def test_a_job_is_canceled_after_its_preview_with_the_reason(board: BrowserClient) -> None:
    (job_id,) = add(board)
    visitor = board.visitor()
    assert f"/actions?verb=cancel&amp;ids={job_id}" in visitor.page(f"/jobs/{job_id}")
    preview = text_of(visitor.page(f"/actions?verb=cancel&ids={job_id}"))
    assert "1 queued will be canceled" in preview
    assert f"freehold job cancel {job_id}" in preview
    assert states(board) == {job_id: "queued"}
    page = visitor.done("/actions", {"verb": "cancel", "ids": str(job_id), "reason": "a test"})
    assert "1 job canceled." in page
    assert states(board) == {job_id: "canceled"}
    (entry,) = board.app.operator.audit().entries
    assert (entry.verb, entry.via, entry.reason) == ("cancel", "dashboard", "a test")


def test_refused_jobs_of_a_choice_are_named_and_left_out(board: BrowserClient) -> None:
    first, second, third = add(board, 3)
    board.app.operator.cancel(first, by="ann")
    ids = [str(first), str(second), str(third)]
    visitor = board.visitor()
    preview = text_of(visitor.page(f"/actions?verb=pause&ids={'&ids='.join(ids)}"))
    assert "2 queued will be paused" in preview
    assert "1 refused: canceled and cannot become paused" in preview
    page = visitor.done("/actions", {"verb": "pause", "ids": ids})
    assert "2 jobs paused; 1 refused." in page
    assert states(board) == {first: "canceled", second: "paused", third: "paused"}


def test_all_jobs_that_match_are_changed_and_no_others(board: BrowserClient) -> None:
    ids = add(board, 3)
    other = board.app.tasks.get("greet").using(queue="mail").enqueue("bob").id
    visitor = board.visitor()
    where = "q=queue:default&state=queued"
    assert "3 queued will be canceled" in text_of(visitor.page(f"/actions?verb=cancel&{where}"))
    form = {"verb": "cancel", "q": "queue:default", "state": "queued", "reason": "old"}
    assert "Cancel 3 jobs done" in text_of(visitor.done("/actions", form))
    assert states(board) == dict.fromkeys(ids, "canceled") | {other: "queued"}


def test_a_reason_is_needed_for_cancel_and_for_many_jobs(sqlite_board: BrowserClient) -> None:
    add(sqlite_board, REASON_ABOVE + 1)
    visitor = sqlite_board.visitor()
    for verb in ("cancel", "pause"):
        response = visitor.post("/actions", {"verb": verb, "q": "queue:default"})
        assert response.status_code == 422
        assert "Give a reason" in text_of(response.text)
    assert set(states(sqlite_board).values()) == {"queued"}


def test_a_filter_of_all_jobs_is_refused(sqlite_board: BrowserClient) -> None:
    add(sqlite_board)
    response = sqlite_board.visitor().post("/actions", {"verb": "cancel", "reason": "x"})
    assert response.status_code == 422
    assert "every job" in text_of(response.text)


def test_deleting_needs_an_admin(secured: BrowserClient) -> None:
    (job_id,) = add(secured)
    form = {"verb": "delete", "ids": str(job_id), "reason": "x"}
    operator = secured.visitor("operator")
    assert operator.get(f"/actions?verb=delete&ids={job_id}").status_code == 403
    assert operator.post("/actions", form).status_code == 403
    assert operator.post("/actions", {**form, "ids": "", "q": "queue:default"}).status_code == 403
    assert states(secured) == {job_id: "queued"}
    assert "1 job deleted." in secured.visitor("admin").done("/actions", form)
    assert states(secured) == {}


def test_a_failed_job_is_retried_from_its_group(board: BrowserClient) -> None:
    job_id = board.app.tasks.get("broken").enqueue("x").id
    board.work()
    assert board.app.operator.show(job_id).job.state is State.FAILED
    visitor = board.visitor()
    page = visitor.page("/failures")
    assert "it broke" in page
    assert f"verb=retry&amp;ids={job_id}" in page
    assert "1 job retried." in visitor.done("/actions", {"verb": "retry", "ids": str(job_id)})
    assert states(board) == {job_id: "queued"}


# -- private data ----------------------------------------------------------------------------


def test_private_data_is_shown_on_request_and_the_audit_records_it(board: BrowserClient) -> None:
    job_id = board.app.tasks.get("broken").enqueue("a private value").id
    board.work()
    visitor = board.visitor()
    hidden = visitor.page(f"/jobs/{job_id}")
    shown = visitor.done(f"/jobs/{job_id}/private")
    for text in ("Traceback", "raise ValueError"):
        assert text in shown
        assert text not in hidden
    assert "…masked…" in shown  # the parameter is called secret
    assert "a private value" not in hidden + shown
    (entry,) = board.app.operator.audit().entries
    assert (entry.verb, entry.kind, entry.subject) == ("show_private", "job", str(job_id))


def test_arguments_under_private_names_stay_masked() -> None:
    values = {"password": "x1", "to": {"API_KEY": "x2", "number": 2**63}, "l": [{"token": "x3"}]}
    text = value_text(values)
    assert "x1" not in text
    assert "x2" not in text
    assert "x3" not in text
    assert str(2**63) in text


def test_a_viewer_sees_no_private_data(secured: BrowserClient) -> None:
    (job_id,) = add(secured)
    visitor = secured.visitor("viewer")
    assert "shown to operators only" in visitor.page(f"/jobs/{job_id}")
    assert visitor.post(f"/jobs/{job_id}/private").status_code == 403
    assert secured.app.operator.audit().entries == ()
    assert TOKENS["viewer"] not in visitor.page("/")
