"""Amend and clone over HTTP."""

from __future__ import annotations

from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.types import AttemptEnd, ClaimRequest, LeaseKey, NewStep, QueueDemand
from tests.http.api_client import ApiClient, problem


def test_a_waiting_job_is_amended(client: ApiClient) -> None:
    job_id = client.add()
    response = client.post(f"/api/jobs/{job_id}/amend", {"priority": 4, "by": "ann"})
    assert response.json() == {"id": job_id, "status": "done", "state": "queued"}
    assert client.job(job_id).priority == 4
    nothing = client.post(f"/api/jobs/{job_id}/amend", {})
    assert "amend needs a priority" in problem(nothing, 422, "bad-input")


def test_a_clone_has_other_arguments_that_fit_the_task(client: ApiClient) -> None:
    job_id = client.add(args={"name": "ann"})
    made = client.post(f"/api/jobs/{job_id}/clone", {"args": {"name": "bob"}, "queue": "b"})
    assert made.status_code == 201
    new = client.job(made.json()["id"])
    assert (new.args, new.queue, new.meta) == ('{"name":"bob"}', "b", {"cloned_from": job_id})
    wrong = client.post(f"/api/jobs/{job_id}/clone", {"args": {"name": 7}})
    assert wrong.status_code == 422
    assert "greet" in wrong.json()["detail"]


def test_a_job_is_retried_from_a_step(client: ApiClient) -> None:
    job_id, store = client.add(), client.app._client.store
    request = ClaimRequest(owner="w1", lease_seconds=30.0, demands=(QueueDemand("default", 1),))
    (attempt,) = store.claim(request)
    lease = LeaseKey(job_id, attempt.token)
    store.put_steps("w1", [NewStep(lease, "charge", 1), NewStep(lease, "ship", 2)])
    retry = f"/api/jobs/{job_id}/retry"
    problem(client.post(retry, {"from_step": "ship"}), 409, "illegal-transition")
    store.finish("w1", [AttemptEnd(attempt, Outcome(kind=OutcomeKind.PAUSE))])
    detail = problem(client.post(retry, {"from_step": "shop"}), 422, "bad-input")
    assert "its steps are 'charge', 'ship'" in detail
    problem(client.post(retry, {"from_step": ""}), 422, "bad-input")
    assert client.post(retry, {"from_step": "ship"}).json()["state"] == "queued"
    assert [step.name for step in store.read_steps(job_id)] == ["charge"]
    problem(client.post(retry, {}), 409, "illegal-transition")
