"""Lists that are loaded again: rows stay where they are, and new ones are counted."""

from __future__ import annotations

import re
from html import unescape

import pytest

from freehold.store.types import JobFilter
from tests.dashboard.browser_client import BrowserClient, Visitor
from tests.dashboard.test_pages import PART

pytestmark = pytest.mark.requirement("N14")


def rows_of(page: str) -> list[int]:
    return [int(each) for each in re.findall(r'<tr id="(?:job|event)-(\d+)"', page)]


def refresh_of(page: str) -> str:
    """The address from which the page loads itself again."""
    found = re.search(r'hx-get="([^"]*)"', page)
    assert found
    return unescape(found[1])


def loaded_again(visitor: Visitor, page: str) -> str:
    response = visitor.get(refresh_of(page), headers=PART)
    assert response.status_code == 200, response.text
    return response.text


def test_new_jobs_are_counted_and_not_inserted(board: BrowserClient) -> None:
    greet, visitor = board.app.tasks.get("greet"), board.visitor()
    first = [greet.using(delay=3600).enqueue("x").id for _ in range(3)]
    page = visitor.page("/jobs")
    assert rows_of(page) == first[::-1]
    for _ in range(2):
        greet.using(delay=3600).enqueue("y")
    again = loaded_again(visitor, page)
    assert rows_of(again) == rows_of(page)
    assert "↑ 2 new" in again
    assert len(rows_of(visitor.page("/jobs"))) == 5


def test_a_row_that_matches_no_longer_stays_in_its_place(board: BrowserClient) -> None:
    greet, visitor = board.app.tasks.get("greet"), board.visitor()
    ids = [greet.using(delay=3600).enqueue("x").id for _ in range(3)]
    page = visitor.page("/jobs?state=queued")
    board.app.operator.pause(ids[1], by="ann")
    again = loaded_again(visitor, page)
    assert rows_of(again) == ids[::-1]
    assert re.findall(r'<tr id="job-(\d+)" class="left"', again) == [str(ids[1])]
    assert "data-new" not in again


def test_a_full_page_counts_what_is_newer_only(board: BrowserClient) -> None:
    """Older jobs that move up because others left are not new."""
    greet, visitor = board.app.tasks.get("greet"), board.visitor()
    ids = [
        handle.id
        for handle in board.app.enqueue_many(
            [greet.using(delay=3600).prepare("x") for _ in range(55)]
        )
    ]
    page = visitor.page("/jobs?state=queued")
    assert len(rows_of(page)) == 50
    board.app.operator.pause(*ids[-5:], by="ann")
    again = loaded_again(visitor, page)
    assert rows_of(again) == rows_of(page)
    assert "data-new" not in again
    assert f"before={ids[5]}" in again
    for _ in range(60):
        greet.using(delay=3600).enqueue("y")
    assert "↑ 50+ new" in loaded_again(visitor, page)


def test_an_empty_list_gets_its_first_rows(board: BrowserClient) -> None:
    visitor = board.visitor()
    page = visitor.page("/jobs")
    assert refresh_of(page) == "/ui/jobs"
    job_id = board.app.tasks.get("greet").enqueue("x").id
    assert rows_of(loaded_again(visitor, page)) == [job_id]


def test_new_events_are_counted_and_not_inserted(board: BrowserClient) -> None:
    greet, visitor = board.app.tasks.get("greet"), board.visitor()
    ids = [greet.enqueue("x").id for _ in range(3)]
    assert refresh_of(visitor.page("/events")) == "/ui/events"
    board.app.operator.pause(ids[0], by="ann")
    page, of_kind = visitor.page("/events"), visitor.page("/events?kind=resumed")
    board.app.operator.pause(*ids[1:], by="ann")
    again = loaded_again(visitor, page)
    assert rows_of(again) == rows_of(page)
    assert "↑ 2 new" in again
    assert "data-new" not in loaded_again(visitor, of_kind)


@pytest.mark.parametrize("shown", ["0", "x", "9223372036854775808", ",".join(["1"] * 51)])
def test_rows_that_cannot_be_are_refused(sqlite_board: BrowserClient, shown: str) -> None:
    query = "&".join(f"shown={each}" for each in shown.split(","))
    assert sqlite_board.visitor().get(f"/jobs?{query}").status_code == 422
    assert sqlite_board.app.operator.jobs(JobFilter()).jobs == ()
