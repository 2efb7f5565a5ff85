"""The page of one job: leases by token, steps, neighbours; and the picture of workers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from freehold import Freehold, Retry
from freehold.dashboard.spans import TimeScale, lease_picture, scale_of, swimlanes
from freehold.model.attempt_span import AttemptSpan
from freehold.model.lease_history import LeaseRecord
from freehold.store.types import JobFilter
from tests.dashboard.browser_client import BrowserClient, text_of

pytestmark = pytest.mark.requirement("N14")
START = datetime(2026, 1, 1, tzinfo=UTC)


def define(app: Freehold) -> None:
    @app.task(name="flaky", retry=Retry(max_attempts=3, base_seconds=0))
    async def flaky(ctx) -> str:  # type: ignore[no-untyped-def]
        await ctx.step("charge", charge)
        ctx.log(f"a line of attempt {ctx.attempt}")
        if ctx.attempt == 1:
            raise ValueError("the first attempt fails")
        return "done"

    async def charge() -> dict[str, str]:
        return {"receipt": "a private value"}


def test_a_job_shows_its_leases_steps_and_log(board: BrowserClient) -> None:
    define(board.app)
    job_id = board.app.tasks.get("flaky").enqueue().id
    board.work()
    visitor = board.visitor()
    page = visitor.page(f"/jobs/{job_id}")
    text = text_of(page)
    first, second = board.app.operator.show(job_id).leases
    assert first.token < second.token
    assert (first.outcome, second.outcome) == ("retried", "succeeded")
    assert f"{second.token} 2 {second.owner}" in text
    assert f"job-{job_id}" in visitor.page(f"/workers/{second.owner}")  # where the lease links to
    assert "ValueError: the first attempt fails" in text
    assert "1 charge done 1" in text
    assert "a line of attempt 2" in text
    assert page.count('class="ran succeeded"') == 1
    assert "a private value" not in page
    assert "a private value" in visitor.done(f"/jobs/{job_id}/private")
    again = visitor.page(f"/actions?verb=retry&ids={job_id}&step=charge")
    assert f"freehold job retry {job_id} --from charge" in again
    visitor.done("/actions", {"verb": "retry", "ids": str(job_id), "step": "charge"})
    assert board.app.operator.show(job_id).steps == []


def test_a_job_shows_its_neighbours_in_the_lane(board: BrowserClient) -> None:
    greet = board.app.tasks.get("greet")
    ids = [greet.using(target="a/b").enqueue("x").id for _ in range(6)]
    text = text_of(board.visitor().page(f"/jobs/{ids[4]}"))
    shown = text[text.index("In its lane") : text.index("The whole lane")]
    assert [f" {each} " in shown for each in ids[1:]] == [True] * 5


def test_a_step_is_for_the_retry_of_one_job(sqlite_board: BrowserClient) -> None:
    visitor = sqlite_board.visitor()
    for query in ("verb=cancel&ids=1&step=s", "verb=retry&ids=1&ids=2&step=s"):
        assert visitor.get(f"/actions?{query}").status_code == 422


def test_workers_show_attempts_and_what_the_manager_decided(board: BrowserClient) -> None:
    define(board.app)
    board.app.tasks.get("flaky").enqueue()
    board.work()
    job = board.app.operator.jobs(JobFilter()).jobs[0]
    visitor = board.visitor()
    page = visitor.page("/workers?minutes=60")
    assert page.count('class="ran ') == 2
    assert f'href="/ui/jobs/{job.id}"' in page
    assert visitor.get("/workers?minutes=7").status_code == 422


# -- pictures --------------------------------------------------------------------------------


def span(worker: str, start: float, end: float | None, job_id: int = 1) -> AttemptSpan:
    times = (START + timedelta(seconds=each) if each is not None else None for each in (start, end))
    begin, done = times
    assert begin is not None
    outcome = "running" if done is None else "succeeded"
    return AttemptSpan(job_id, "t", "q", worker, 1, job_id, begin, begin, done, outcome)


def test_bars_that_overlap_are_below_each_other() -> None:
    scale = TimeScale(START, START + timedelta(seconds=100))
    spans = [
        span("w", 0, 50, 1),
        span("w", 10, 20, 2),
        span("w", 20, 60, 3),
        span("w", 50, None, 4),
    ]
    (lane,) = swimlanes(spans, ["w"], scale)
    assert [(bar.job_id, bar.row) for bar in lane.bars] == [(1, 0), (2, 1), (3, 1), (4, 0)]
    assert [(bar.x, bar.width) for bar in lane.bars][3] == (500.0, 500.0)
    assert lane.rows == 2


def test_workers_that_are_gone_follow_the_newest_first() -> None:
    scale = TimeScale(START, START + timedelta(seconds=100))
    spans = [span(f"gone-{n}", n, n + 1, n) for n in range(12)]
    lanes = swimlanes(spans, ["alive"], scale)
    assert [lane.worker for lane in lanes][:3] == ["alive", "gone-11", "gone-10"]
    assert len(lanes) == 9
    assert lanes[0].rows == 1


def test_a_picture_is_not_longer_than_its_attempts() -> None:
    until = START + timedelta(hours=1)
    assert scale_of([], START, until).since == START
    late = scale_of([span("w", 3500, 3510)], START, until)
    assert late.since == until - timedelta(seconds=100)
    assert scale_of([span("w", 3599, None)], START, until).since == until - timedelta(seconds=30)


def test_a_lease_picture_has_a_bar_for_each_token() -> None:
    leases = [
        LeaseRecord(
            token=n,
            attempt=n,
            owner="w",
            leased_at=START + timedelta(seconds=10 * n),
            started_at=None,
            ended_at=None if n == 3 else START + timedelta(seconds=10 * n + 5),
            outcome="held" if n == 3 else "lease_lost",
        )
        for n in (1, 2, 3)
    ]
    picture = lease_picture(7, leases, START + timedelta(seconds=60))
    assert picture is not None
    assert [bar.row for bar in picture.bars] == [0, 1, 2]
    assert [bar.kind for bar in picture.bars] == ["lost", "lost", "running"]
    assert lease_picture(7, [], START) is None
