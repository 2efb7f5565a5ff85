"""Jobs over HTTP: enqueue, list, show, explain, and the operator's verbs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from freehold.model.operator_actions import OperatorVerb
from freehold.store.types import ClaimRequest, LeaseKey, LogChunk, NewLogLine, QueueDemand
from tests.http.desk import Desk, problem


@pytest.mark.requirement("S4.8")
def test_a_job_goes_its_way(desk: Desk) -> None:
    body = {"task": "greet", "args": {"name": "Ann"}, "tags": ["eu"], "priority": 3}
    answer = desk.post("/api/jobs", body)
    assert answer.status_code == 201
    job_id = answer.json()["id"]
    assert answer.json() == {"id": job_id, "task": "greet", "created": True}
    desk.work()
    document = desk.told(f"/api/jobs/{job_id}")
    job = document["job"]
    assert (job["state"], job["report"]["result"]) == ("succeeded", "hello Ann")
    assert (job["tags"], job["priority"], job["max_attempts"]) == (["eu"], 3, 2)
    assert [moment["kind"] for moment in document["timeline"]][-1] == "succeeded"
    assert document["log"] == []


def test_what_a_handler_said_is_shown(desk: Desk) -> None:
    job_id = desk.add()
    store = desk.app.client.store
    ask = ClaimRequest(owner="w1", lease_seconds=30.0, wants=(QueueDemand("default", 1),))
    (attempt,) = store.claim(ask)
    key = LeaseKey(attempt.job_id, attempt.token)
    store.note("w1", [LogChunk(key, None, (NewLogLine(1, "page <one>", 0.0),))])
    (line,) = desk.told(f"/api/jobs/{job_id}")["log"]
    assert (line["line"], line["token"]) == ("page <one>", attempt.token)


@pytest.mark.parametrize(
    ("body", "word", "says"),
    [
        ({"task": "greet", "args": {"nam": "x"}}, "bad-arguments", "it takes (name: str"),
        ({"task": "greet", "args": {"name": 5}}, "bad-arguments", "Expected `str`"),
        ({"task": "gret"}, "unknown-task", "did you mean greet?"),
        ({"task": "greet", "args": {"name": "\0"}}, "bad-payload", "NUL"),
        ({"task": "greet", "args": {"name": "x"}, "queue": "a b"}, "bad-input", "`queue`"),
        ({"task": "greet", "args": [1]}, "bad-input", "Expected `object`"),
        ({"task": "greet", "when": "now"}, "bad-input", "unknown field `when`"),
        ({"task": "greet", "args": {"name": "x"}, "target": "\x07"}, "bad-name", "printable"),
        ({}, "bad-input", "missing required field `task`"),
        (
            {"task": "greet", "args": {"name": "x"}, "run_at": "2030-01-01T00:00:00"},
            "bad-input",
            "timezone",
        ),
        (
            {
                "task": "greet",
                "args": {"name": "x"},
                "run_at": "2030-01-01T00:00:00Z",
                "delay_seconds": 1,
            },
            "bad-input",
            "exclude each other",
        ),
    ],
)
def test_what_cannot_be_enqueued_is_refused(
    desk: Desk, body: dict[str, object], word: str, says: str
) -> None:
    assert says in problem(desk.post("/api/jobs", body), 422, word)
    assert desk.told("/api/jobs")["jobs"] == []


def test_a_task_whose_code_is_elsewhere_is_enqueued_raw(desk: Desk) -> None:
    answer = desk.post("/api/jobs", {"task": "far.away", "args": {"n": 1}, "raw": True})
    assert answer.status_code == 201
    assert desk.job(answer.json()["id"]).args == '{"n":1}'


def test_a_repeated_enqueue_answers_with_the_job_that_is_there(desk: Desk) -> None:
    for key in ("unique_key", "idempotency_key"):
        body = {"task": "greet", "args": {"name": "x"}, key: "k"}
        first, second = desk.post("/api/jobs", body), desk.post("/api/jobs", body)
        assert (first.status_code, second.status_code) == (201, 200)
        assert second.json() == {**first.json(), "created": False}


def test_a_pending_job_is_submitted(desk: Desk) -> None:
    job_id = desk.add(pending=True)
    assert desk.job(job_id).state == "pending"
    assert desk.post(f"/api/jobs/{job_id}/submit").json() == {
        "id": job_id,
        "what": "done",
        "state": "queued",
    }


def test_a_job_for_later_is_explained(desk: Desk) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    job_id = desk.add(run_at=later.isoformat())
    document = desk.told(f"/api/jobs/{job_id}/explain")
    assert document["id"] == job_id
    assert [cause["code"] for cause in document["causes"]] == ["not_due"]


def test_jobs_are_listed_by_what_they_are_and_by_pages(desk: Desk) -> None:
    ids = [desk.add(queue="a", tags=["x"], target=f"lane {n}/b") for n in range(5)]
    other = desk.add("broken", queue="b")
    desk.act(OperatorVerb.PAUSE, ids[0])
    assert _ids(desk, "/api/jobs?queue=a") == ids[::-1]
    assert _ids(desk, "/api/jobs?state=paused&state=failed") == [ids[0]]
    assert _ids(desk, "/api/jobs?task=broken") == [other]
    assert _ids(desk, "/api/jobs?target=lane%203/b") == [ids[3]]
    assert _ids(desk, "/api/jobs?tag=y") == []
    assert _ids(desk, "/api/jobs?queue=null") == []
    found: list[int] = []
    path = "/api/jobs?queue=a&limit=2"
    while True:
        page = desk.told(path)
        found += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        path = f"/api/jobs?queue=a&limit=2&before={page['next']}"
    assert found == ids[::-1]


def _ids(desk: Desk, path: str) -> list[int]:
    return [job["id"] for job in desk.told(path)["jobs"]]


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=null",
        "before=null",
        "limit=1001",
        "limit=many",
        "state=lost",
        "before=0",
        "sort=id",
        "queue=a&queue=b",
        "queue=a%20b",
        "target=",
    ],
)
def test_a_list_that_makes_no_sense_is_refused(sqlite_desk: Desk, query: str) -> None:
    problem(sqlite_desk.get(f"/api/jobs?{query}"), 422, "bad-input")


@pytest.mark.requirement("P5")
def test_the_verbs_say_what_they_did(desk: Desk) -> None:
    job_id = desk.add()
    said = [
        desk.post(f"/api/jobs/{job_id}/{verb}", {"reason": "look", "by": "bob"}).json()
        for verb in ("pause", "pause", "resume", "cancel", "cancel", "retry")
    ]
    assert [(answer["what"], answer["state"]) for answer in said] == [
        ("done", "paused"),
        ("already", "paused"),
        ("done", "queued"),
        ("done", "canceled"),
        ("already", "canceled"),
        ("done", "queued"),
    ]
    moments = desk.told(f"/api/jobs/{job_id}")["timeline"]
    assert {moment["by"] for moment in moments if moment["kind"] == "paused"} == {"bob (local)"}
    assert {moment["reason"] for moment in moments if moment["kind"] == "paused"} == {"look"}


def test_a_running_job_is_asked_to_stop(desk: Desk) -> None:
    job_id = desk.add()
    ask = ClaimRequest(owner="w1", lease_seconds=30.0, wants=(QueueDemand("default", 1),))
    assert len(desk.app.client.store.claim(ask)) == 1
    answer = desk.post(f"/api/jobs/{job_id}/cancel")
    assert answer.json() == {"id": job_id, "what": "requested", "state": "assigned"}
    assert desk.told(f"/api/jobs/{job_id}")["job"]["request"] == "cancel"


@pytest.mark.requirement("S0.1")
def test_what_the_state_does_not_allow_is_a_conflict(desk: Desk) -> None:
    job_id = desk.add()
    detail = problem(desk.post(f"/api/jobs/{job_id}/retry"), 409, "illegal-transition")
    assert detail == f"job {job_id} is queued: only a finished job can be retried"


@pytest.mark.requirement("P5")
def test_a_taken_unique_key_names_its_holder(desk: Desk) -> None:
    first = desk.add(unique_key="k")
    desk.act(OperatorVerb.CANCEL, first)
    holder = desk.add(unique_key="k")
    answer = desk.post(f"/api/jobs/{first}/retry")
    assert f"job {holder}" in problem(answer, 409, "unique-key-taken")
    assert answer.json()["holder"] == holder


@pytest.mark.parametrize("path", ["", "/explain", "/cancel", "/pause", "/resume", "/retry"])
def test_an_unknown_id_is_not_found(desk: Desk, path: str) -> None:
    ask = desk.get if path in ("", "/explain") else desk.post
    answer = ask(f"/api/jobs/4711{path}")
    assert "there is no job 4711" in problem(answer, 404, "job-not-found")


@pytest.mark.parametrize("word", ["x", "0", "-1", "1.5", "9" * 30, "%00"])
def test_what_is_no_id_is_refused(sqlite_desk: Desk, word: str) -> None:
    problem(sqlite_desk.get(f"/api/jobs/{word}"), 422, "bad-input")
