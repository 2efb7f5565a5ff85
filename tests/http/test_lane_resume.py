"""POST /targets/{target}/jobs/{id}/resume/"""

from __future__ import annotations

import pytest

from freehold.model.operator_actions import OperatorVerb
from tests.http.api_client import ApiClient, problem

pytestmark = pytest.mark.requirement("S4.8", "S4.7")


@pytest.mark.parametrize("target", ["account-42", "a/b c/ü"])
def test_a_resumed_job_runs_and_its_lane_continues(client: ApiClient, target: str) -> None:
    first, second = (client.add(args={"name": n}, target=target) for n in ("one", "two"))
    client.act(OperatorVerb.PAUSE, first)
    client.work()
    # A paused job blocks its lane only at the head, and this one is the head.
    assert [str(client.job(i).state) for i in (first, second)] == ["paused", "queued"]
    response = client.post(f"/targets/{target}/jobs/{first}/resume/", {"reason": "mended"})
    assert response.status_code == 200, response.text
    assert response.json() == {"id": first, "status": "done", "state": "queued"}
    client.work()
    assert [str(client.job(i).state) for i in (first, second)] == ["succeeded", "succeeded"]
    one, two = (client.job(i).report for i in (first, second))
    assert one is not None
    assert two is not None
    assert one.finished_at <= two.finished_at


def test_a_failed_job_that_blocks_its_lane_is_resumed(client: ApiClient) -> None:
    failed = client.add("broken", args={"secret": "x"}, target="t", max_attempts=1)
    behind = client.add(args={"name": "x"}, target="t")
    client.work()
    assert [str(client.job(i).state) for i in (failed, behind)] == ["failed", "queued"]
    assert client.post(f"/targets/t/jobs/{failed}/resume/").status_code == 200
    client.work()
    job = client.job(failed)
    assert (str(job.state), job.attempt) == ("failed", 1)  # it ran again, with fresh attempts
    kinds = [entry["kind"] for entry in client.get_json(f"/api/jobs/{failed}")["timeline"]]
    assert kinds.count("leased") == 2


def test_another_target_has_no_such_job(client: ApiClient) -> None:
    in_lane, in_none = client.add(target="t"), client.add()
    client.act(OperatorVerb.PAUSE, in_lane)
    detail = problem(client.post(f"/targets/u/jobs/{in_lane}/resume/"), 404, "job-not-found")
    assert detail == f"target 'u' has no job {in_lane}: that job is in lane t"
    detail = problem(client.post(f"/targets/t/jobs/{in_none}/resume/"), 404, "job-not-found")
    assert detail.endswith("that job is in no lane")
    assert str(client.job(in_lane).state) == "paused"


def test_an_unknown_job_is_not_found(client: ApiClient) -> None:
    assert "no job 4711" in problem(
        client.post("/targets/t/jobs/4711/resume/"), 404, "job-not-found"
    )


def test_a_job_in_another_state_is_a_conflict(client: ApiClient) -> None:
    job_id = client.add(args={"name": "x"}, target="t")
    for state in ("queued", "succeeded"):
        detail = problem(
            client.post(f"/targets/t/jobs/{job_id}/resume/"), 409, "illegal-transition"
        )
        assert f"job {job_id} is {state}: only a paused or failed job can be resumed" in detail
        client.work()
