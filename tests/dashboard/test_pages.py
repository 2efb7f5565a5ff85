"""What pages show and change, without JavaScript, over ASGI."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from freehold import Freehold
from freehold.dashboard.page_request import PageRequest
from freehold.dashboard.words import stage_words, state_words
from freehold.http_auth import Caller, Role
from freehold.model.job import NewJob
from freehold.model.limit import Limit
from freehold.model.state import Stage, State
from freehold.model.timing import Every
from freehold.operator import AsyncOperator
from freehold.store.types import JobFilter, JobPage
from tests.dashboard.browser_client import BrowserClient, text_of
from tests.http.api_client import app_on, settings_with

pytestmark = pytest.mark.requirement("N14")

#: Every list, and a page of each kind.
PAGES = (
    "/",
    "/jobs",
    "/jobs?state=failed",
    "/jobs?q=state:failed,canceled+since:2h",
    "/failures",
    "/batches",
    "/batches?kind=gather&state=open",
    "/workflows",
    "/workflows?state=failed",
    "/queues",
    "/queues/default",
    "/lanes",
    "/lanes/a%2Fb",
    "/limits",
    "/tasks",
    "/tasks/greet",
    "/workers",
    "/schedules",
    "/events",
    "/bulk",
    "/tenants",
    "/system",
    "/audit",
    "/help",
)
#: The headers of a page that loads itself again.
PART = {"HX-Request": "true", "HX-Target": "main#page"}


@pytest.fixture
def filled(board: BrowserClient) -> BrowserClient:
    """Jobs in several states, a lane, limits, a pause, and an operator's changes."""
    fill(board.app)
    board.work()
    return board


def fill(app: Freehold) -> None:
    greet, broken = app.tasks.get("greet"), app.tasks.get("broken")
    greet.enqueue("ann")
    broken.using(target="a/b").enqueue("a value of ann")
    greet.using(target="a/b").enqueue("second in its lane")
    greet.using(delay=3600).enqueue("later")
    app.operator.pause_queue("mail", by="ann", reason="the server is down")
    greet.using(queue="mail").enqueue("waits for the queue")
    app.operator.set_queue_limit("mail", Limit(3), by="ann")
    app.operator.set_key_limit("github:*", Limit(2), by="ann")


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_shown_with_jobs_and_without(board: BrowserClient, path: str) -> None:
    visitor = board.visitor()
    assert "<h1>" in visitor.page(path)
    fill(board.app)
    board.work()
    page = visitor.page(path)
    assert "<h1>" in page
    assert "Traceback" not in page


def test_a_job_shows_why_it_waits_and_what_happened(filled: BrowserClient) -> None:
    jobs = {job.queue: job for job in filled.app.operator.jobs(JobFilter()).jobs}
    text = text_of(filled.visitor().page(f"/jobs/{jobs['mail'].id}"))
    assert "queue mail is paused by ann: the server is down" in text
    assert "freehold queues resume mail" in text
    assert "created" in text


def test_arguments_results_and_traces_are_in_no_page(filled: BrowserClient) -> None:
    visitor = filled.visitor()
    ids = [job.id for job in filled.app.operator.jobs(JobFilter()).jobs]
    pages = [visitor.page(path) for path in (*PAGES, *(f"/jobs/{each}" for each in ids))]
    for private in ("a value of ann", "hello ann", "second in its", "Traceback", "raise Value"):
        assert not any(private in page for page in pages), private


def test_a_lane_shows_its_head_and_what_is_next(filled: BrowserClient) -> None:
    text = text_of(filled.visitor().page("/lanes/a%2Fb"))
    assert "It has failed" in text
    assert "The lane stands until job" in text


def test_a_failed_job_without_a_lane_is_retried_one_with_a_lane_resumed(
    filled: BrowserClient,
) -> None:
    visitor = filled.visitor()
    filled.app.tasks.get("broken").enqueue("y")
    filled.work()
    jobs = filled.app.operator.jobs(JobFilter(states=frozenset({State.FAILED}))).jobs
    for job in jobs:
        text = text_of(visitor.page(f"/jobs/{job.id}"))
        assert (f"freehold job retry {job.id}" in text) == (job.target is None)
        assert ("It has failed and blocks its lane" in text) == (job.target is not None)
    assert {job.target is None for job in jobs} == {True, False}


def test_the_audit_links_what_was_changed(filled: BrowserClient) -> None:
    operator = filled.app.operator
    operator.pause_queue("mail", by="ann")
    operator.pause_queue("*", by="ann")
    operator.pause_lane("a/b", by="ann")
    operator.set_key_limit("key", Limit(2), by="ann")
    page = filled.visitor().page("/audit")
    for link in ("queues/mail", "queues", "lanes/a%2Fb", "limits"):
        assert re.search(f'data-label="Of"[^>]*>[^<]*<a href="/ui/{link}"', page), link


def test_a_search_finds_jobs_or_says_what_is_wrong(filled: BrowserClient) -> None:
    visitor = filled.visitor()
    assert "1 job shown" in text_of(visitor.page("/jobs?q=queue:mail"))
    assert "No job matches" in text_of(visitor.page("/jobs?q=task:unknown"))
    assert "nonsense" in text_of(visitor.page("/jobs?q=nonsense"))
    job_id = filled.app.operator.jobs(JobFilter()).jobs[0].id
    assert visitor.get(f"/jobs?q={job_id}").headers["location"] == f"/ui/jobs/{job_id}"


def test_changes_of_queues_lanes_and_limits_are_done_and_recorded(board: BrowserClient) -> None:
    fill(board.app)
    visitor = board.visitor()
    assert "Queue mail is resumed." in visitor.done("/queues/mail/resume", {"reason": "up again"})
    visitor.done("/queues/mail/pause", {"seconds": "900"})
    visitor.done("/queues/mail/weight", {"weight": "2.5"})
    visitor.done("/queues/mail/limit", {"max": "7", "rate": "100/min"})
    visitor.done("/lane/pause/a%2Fb", {"reason": "look"})
    visitor.done("/limits/all", {"max": "9"})
    visitor.done("/limits/key", {"key": "x:*", "max": "1"})
    queue = board.app.operator.queue("mail")
    assert queue is not None
    assert (queue.weight, queue.limit.max_leases, queue.paused_until is not None) == (2.5, 7, True)
    lane = board.app.operator.lane("a/b")
    assert lane is not None
    assert lane.pause is not None
    by_dashboard = [e.verb for e in board.app.operator.audit().entries if e.via == "dashboard"]
    assert by_dashboard == [
        "set_limit",
        "set_limit",
        "pause",
        "set_limit",
        "set_weight",
        "pause",
        "resume",
    ]
    assert "up again" in visitor.page("/audit?verb=resume")


def test_wrong_input_changes_nothing_and_says_what_to_do(board: BrowserClient) -> None:
    visitor = board.visitor()
    wrong = [
        ("/queues/mail/weight", {"weight": "0"}),
        ("/queues/mail/limit", {"rate": "often"}),
        ("/queues/mail/pause", {"seconds": "-1"}),
        ("/tasks/greet/enqueue", {"args": "no json"}),
        ("/tasks/greet/enqueue", {"args": "[]"}),
        ("/tasks/greet/enqueue", {"args": '{"name": 5}'}),
    ]
    for path, fields in wrong:
        response = visitor.post(path, fields)
        assert response.status_code == 422, path
        assert 'role="alert"' in response.text
    assert board.app.operator.queues() == []


def test_a_job_is_enqueued_by_the_form_of_its_task(board: BrowserClient) -> None:
    visitor = board.visitor()
    page = visitor.page("/tasks/greet")
    assert "&#34;times&#34;: 1" in page
    text = visitor.done("/tasks/greet/enqueue", {"args": '{"name": "ann"}', "queue": "mail"})
    assert "is enqueued" in text
    (job,) = board.app.operator.jobs(JobFilter()).jobs
    assert (job.task, job.queue) == ("greet", "mail")


def test_a_page_that_did_not_change_is_not_sent_again(sqlite_board: BrowserClient) -> None:
    visitor = sqlite_board.visitor()
    first = visitor.get("/queues", headers=PART)
    assert "<html" not in first.text
    tag = first.headers["hx-ptag"]
    assert visitor.get("/queues", headers={**PART, "HX-PTag": tag}).status_code == 304
    sqlite_board.app.operator.pause_queue("mail", by="ann")
    again = visitor.get("/queues", headers={**PART, "HX-PTag": tag})
    assert again.status_code == 200
    assert "mail" in again.text


def test_a_theme_is_kept(sqlite_board: BrowserClient) -> None:
    visitor = sqlite_board.visitor()
    assert 'class="theme-system"' in visitor.page("/")
    visitor.post("/theme", {"theme": "dark", "back": "/ui/jobs"})
    assert 'class="theme-dark"' in visitor.page("/")
    away = visitor.post("/theme", {"theme": "dark", "back": "//evil.example/"})
    assert away.headers["location"] == "/ui/"


def test_an_error_is_a_page_with_its_sentence(sqlite_board: BrowserClient) -> None:
    visitor = sqlite_board.visitor()
    missing = visitor.get("/jobs/4711")
    assert missing.status_code == 404
    assert "Try again" not in missing.text
    wrong = visitor.post("/queues/mail/weight", {"weight": "0"}).text
    assert ("go back in your browser" in wrong, "Try again" in wrong) == (True, False)
    assert "4711" in text_of(missing.text)
    assert visitor.get("/nothing").status_code == 404
    assert "There is no such page" in visitor.get("/nothing").text
    assert visitor.get("/jobs?before=x").status_code == 422


def test_every_state_and_stage_has_its_words() -> None:
    assert all(state_words(state) for state in State)
    assert all(stage_words(stage) for stage in Stage)


def test_an_error_of_a_page_that_is_loaded_again_comes_without_a_frame(tmp_path: Path) -> None:
    client = BrowserClient(app_on(str(tmp_path / "no-folder" / "jobs.db")), tmp_path)
    try:
        whole = client.visitor().get("/queues")
        assert whole.status_code == 503
        assert "This page looks again by itself" in whole.text
        assert "Try again" in whole.text
        assert int(whole.headers["refresh"]) > 0
        part = client.visitor().get("/queues", headers=PART)
        assert (part.status_code, "refresh" in part.headers) == (503, False)
        assert "<html" not in part.text
        assert 'role="alert"' in part.text
        assert "by itself" not in part.text
    finally:
        client.close()


def test_an_error_that_a_tenant_must_not_see_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = BrowserClient(app_on(str(tmp_path / "no-folder" / "jobs.db")), tmp_path)
    try:
        client.open(settings_with(tmp_path), identify=lambda _: Caller("ann", Role.VIEWER, "ours"))
        response = client.visitor().get("/queues")
        assert (response.status_code, "no-folder" in response.text) == (503, False)
        assert "GET /ui/queues by ann" in caplog.text
        assert "StoreUnavailable" in caplog.text
    finally:
        client.close()


def test_a_page_is_loaded_again_from_its_own_address(sqlite_board: BrowserClient) -> None:
    page = sqlite_board.visitor().page("/lanes/a%3Fb%23c%2525")
    assert 'hx-get="/ui/lanes/a%3Fb%23c%2525' in page


def test_the_page_of_a_deep_lane_begins_with_its_first_jobs(sqlite_board: BrowserClient) -> None:
    greet = sqlite_board.app.tasks.get("greet")
    first, second, *_ = [greet.using(target="deep").enqueue("ann").id for _ in range(203)]
    page = sqlite_board.visitor().page("/lanes/deep")
    head, _, behind = page.partition('id="behind"')
    assert re.findall(r'<tr id="job-(\d+)"', head) == [str(first)]
    assert re.findall(r'<tr id="job-(\d+)"', behind)[0] == str(second)
    assert "The next 99 jobs of 203 are shown" in text_of(page)


class CountingOperator:
    """Counts what pages ask of an operator."""

    def __init__(self, operator: AsyncOperator, asked: Counter[object]) -> None:
        self._operator = operator
        self._asked = asked

    def __getattr__(self, name: str) -> object:
        self._asked[name] += 1
        return getattr(self._operator, name)

    async def jobs(self, filter: JobFilter, reads: int = 20) -> JobPage:
        self._asked["reads"] = max(self._asked["reads"], reads)
        return await self._operator.jobs(filter, reads=reads)


def test_a_page_that_loads_itself_again_reads_little(
    sqlite_board: BrowserClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sqlite_board.app)
    for number in range(30):
        sqlite_board.app.operator.set_key_limit(f"key-{number}", Limit(2), by="ann")
    asked: Counter[object] = Counter()
    plain = vars(PageRequest)["operator"].fget
    counting = property(lambda request: CountingOperator(plain(request), asked))
    monkeypatch.setattr(PageRequest, "operator", counting)
    visitor = sqlite_board.visitor()
    for path in PAGES:
        assert visitor.get(path, headers=PART).status_code == 200
    assert asked["reads"] == 1
    assert asked["key_use"] <= 20
    visitor.page("/queues/default")
    assert asked["reads"] == 20


def test_reasons_of_changes_of_schedules_are_in_the_audit(board: BrowserClient) -> None:
    board.app.operator.put_schedule(
        "nightly", Every(seconds=3600.0), NewJob(task="greet"), by="ann"
    )
    visitor = board.visitor()
    for verb in ("pause", "resume", "run", "drop"):
        visitor.done(f"/schedules/nightly/{verb}", {"reason": f"a reason to {verb}"})
    entries = [e for e in board.app.operator.audit().entries if e.via == "dashboard"]
    assert [entry.reason for entry in entries[::-1]] == [
        f"a reason to {verb}" for verb in ("pause", "resume", "run", "drop")
    ]
