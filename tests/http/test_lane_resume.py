"""POST /targets/{target}/jobs/{id}/resume/"""

from __future__ import annotations

import pytest

from freehold.model.operator_actions import OperatorVerb
from tests.http.desk import Desk, problem

pytestmark = pytest.mark.requirement("S4.8", "S4.7")


@pytest.mark.parametrize("target", ["account-42", "a/b c/ü"])
def test_a_resumed_job_of_a_paused_target_runs_and_the_lane_goes_on(
    desk: Desk, target: str
) -> None:
    first, second = (desk.add(args={"name": n}, target=target) for n in ("one", "two"))
    desk.act(OperatorVerb.PAUSE, first)
    desk.work()
    # A paused follower blocks the lane only when its turn comes: it is the first, so it is.
    assert [str(desk.job(i).state) for i in (first, second)] == ["paused", "queued"]
    answer = desk.post(f"/targets/{target}/jobs/{first}/resume/", {"reason": "mended"})
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"id": first, "what": "done", "state": "queued"}
    desk.work()
    assert [str(desk.job(i).state) for i in (first, second)] == ["succeeded", "succeeded"]
    one, two = (desk.job(i).report for i in (first, second))
    assert one is not None
    assert two is not None
    assert one.finished_at <= two.finished_at


def test_a_failed_job_that_blocks_its_lane_is_resumed(desk: Desk) -> None:
    failed = desk.add("broken", args={"secret": "x"}, target="t", max_attempts=1)
    behind = desk.add(args={"name": "x"}, target="t")
    desk.work()
    assert [str(desk.job(i).state) for i in (failed, behind)] == ["failed", "queued"]
    assert desk.post(f"/targets/t/jobs/{failed}/resume/").status_code == 200
    desk.work()
    job = desk.job(failed)
    assert (str(job.state), job.attempt) == ("failed", 1)  # it ran again, with fresh attempts
    kinds = [moment["kind"] for moment in desk.told(f"/api/jobs/{failed}")["timeline"]]
    assert kinds.count("leased") == 2


def test_another_target_has_no_such_job(desk: Desk) -> None:
    in_lane, in_none = desk.add(target="t"), desk.add()
    desk.act(OperatorVerb.PAUSE, in_lane)
    detail = problem(desk.post(f"/targets/u/jobs/{in_lane}/resume/"), 404, "job-not-found")
    assert detail == f"target 'u' has no job {in_lane}: that job is in lane t"
    detail = problem(desk.post(f"/targets/t/jobs/{in_none}/resume/"), 404, "job-not-found")
    assert detail.endswith("that job is in no lane")
    assert str(desk.job(in_lane).state) == "paused"


def test_an_unknown_job_is_not_found(desk: Desk) -> None:
    assert "no job 4711" in problem(desk.post("/targets/t/jobs/4711/resume/"), 404, "job-not-found")


def test_a_job_in_another_state_is_a_conflict(desk: Desk) -> None:
    job_id = desk.add(args={"name": "x"}, target="t")
    for state in ("queued", "succeeded"):
        detail = problem(desk.post(f"/targets/t/jobs/{job_id}/resume/"), 409, "illegal-transition")
        assert f"job {job_id} is {state}: only a paused or failed job can be resumed" in detail
        desk.work()
