"""Jobs over HTTP: enqueue, list, show, explain, and the operator's verbs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from freehold.model.job import NewJob
from freehold.model.operator_actions import OperatorVerb
from freehold.operator import SHOWN_LIMIT
from freehold.store.types import ClaimRequest, LeaseKey, LogChunk, NewLogLine, QueueDemand
from tests.http.api_client import ApiClient, problem


@pytest.mark.requirement("S4.8")
def test_a_job_is_enqueued_run_and_shown(client: ApiClient) -> None:
    body = {"task": "greet", "args": {"name": "Ann"}, "tags": ["eu"], "priority": 3}
    response = client.post("/api/jobs", body)
    assert response.status_code == 201
    job_id = response.json()["id"]
    made = response.json()
    assert (made["task"], made["created"], made["replaced"]) == ("greet", True, False)
    assert made["created_at"] == client.get_json(f"/api/jobs/{job_id}")["job"]["created_at"]
    client.work()
    document = client.get_json(f"/api/jobs/{job_id}")
    job = document["job"]
    assert (job["state"], job["report"]["result"]) == ("succeeded", "hello Ann")
    assert (job["tags"], job["priority"], job["max_attempts"]) == (["eu"], 3, 2)
    assert [entry["kind"] for entry in document["timeline"]][-1] == "succeeded"
    assert document["log"] == []


@pytest.mark.requirement("N6")
def test_metadata_is_stored_and_shown_to_every_role(client: ApiClient) -> None:
    meta = {"order": 7, "who": "Ann", "rate": 0.5, "eu": True, "parent": None}
    body = {"task": "greet", "args": {"name": "Ann"}, "meta": meta}
    job_id = client.post("/api/jobs", body).json()["id"]
    assert client.get_json(f"/api/jobs/{job_id}")["job"]["meta"] == meta
    client.work()
    assert client.get_json("/api/jobs")["jobs"][0]["meta"] == meta


@pytest.mark.requirement("N4")
@pytest.mark.parametrize(
    ("options", "replaced"),
    [
        ({"unique_key": "k", "unique_until": "start"}, False),
        ({"unique_key": "k", "unique_until": "start", "replace": ["args"]}, True),
        ({"debounce_key": "k", "debounce_seconds": 30, "debounce_at_most_seconds": 60}, True),
        ({"throttle_key": "k", "throttle_seconds": 60}, True),
    ],
)
def test_a_second_call_finds_the_job_that_waits(
    client: ApiClient, options: dict[str, Any], replaced: bool
) -> None:
    first = client.post("/api/jobs", {"task": "greet", "args": {"name": "Ann"}, **options})
    again = client.post("/api/jobs", {"task": "greet", "args": {"name": "Bob"}, **options})
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == {**first.json(), "created": False, "replaced": replaced}
    shown = client.get_json(f"/api/jobs/{first.json()['id']}?args=true")["job"]
    assert shown["args"]["name"] == ("Bob" if replaced else "Ann")
    assert shown["waiting_key"].endswith("/greet/k")


@pytest.mark.requirement("N4")
@pytest.mark.parametrize(
    "options",
    [
        {"unique_until": "start"},
        {"unique_key": "k", "replace": ["args"]},
        {"unique_key": "k", "unique_until": "start", "replace": ["queue"]},
        {"debounce_key": "k"},
        {"debounce_key": "k", "debounce_seconds": 1, "delay_seconds": 1},
        {"throttle_key": "k", "throttle_seconds": 1, "idempotency_key": "i"},
        {"throttle_key": "k", "throttle_seconds": 1, "pending": True},
    ],
)
def test_options_of_keys_that_make_no_sense_are_refused(
    client: ApiClient, options: dict[str, Any]
) -> None:
    body = {"task": "greet", "args": {"name": "Ann"}, **options}
    problem(client.post("/api/jobs", body), 422, "bad-input")
    assert client.get_json("/api/jobs")["jobs"] == []


def test_a_job_can_have_a_time_to_start_by(client: ApiClient) -> None:
    body = {"task": "greet", "args": {"name": "Ann"}}
    by = client.post("/api/jobs", {**body, "start_by": "2050-01-31T12:00:00Z"}).json()["id"]
    assert client.get_json(f"/api/jobs/{by}")["job"]["start_by"] == "2050-01-31T12:00:00Z"
    within = client.post("/api/jobs", {**body, "start_by_seconds": 3600}).json()["id"]
    assert client.get_json(f"/api/jobs/{within}")["job"]["start_by"] is not None
    for options in (
        {"start_by": "2050-01-31T12:00:00Z", "start_by_seconds": 5},
        {"start_by": "2050-01-31T12:00:00Z", "run_at": "2050-01-31T12:00:00Z"},
        {"start_by": "2050-01-31T12:00:00"},
        {"start_by_seconds": 0},
        {"start_by_seconds": 5, "throttle_key": "k", "throttle_seconds": 1},
    ):
        problem(client.post("/api/jobs", {**body, **options}), 422, "bad-input")
    assert len(client.get_json("/api/jobs")["jobs"]) == 2


@pytest.mark.requirement("N6")
@pytest.mark.parametrize(
    ("meta", "slug"),
    [
        ({"a": [1]}, "bad-input"),
        ({"a": {}}, "bad-input"),
        ([1], "bad-input"),
        ("a", "bad-input"),
        ({"": 1}, "bad-input"),
        ({"a": 2**63}, "bad-payload"),
        ({"a": "x" * 4096}, "bad-payload"),
    ],
)
def test_bad_metadata_is_refused_and_nothing_stored(
    client: ApiClient, meta: Any, slug: str
) -> None:
    body = {"task": "greet", "args": {"name": "Ann"}, "meta": meta}
    assert "meta" in problem(client.post("/api/jobs", body), 422, slug)
    assert client.get_json("/api/jobs")["jobs"] == []


def test_the_log_of_a_handler_is_shown(client: ApiClient) -> None:
    job_id = client.add()
    store = client.app._client.store
    request = ClaimRequest(owner="w1", lease_seconds=30.0, demands=(QueueDemand("default", 1),))
    (attempt,) = store.claim(request)
    key = LeaseKey(attempt.job_id, attempt.token)
    store.append_log("w1", [LogChunk(key, None, (NewLogLine(1, "page <one>", 0.0),))])
    (line,) = client.get_json(f"/api/jobs/{job_id}")["log"]
    assert (line["line"], line["token"]) == ("page <one>", attempt.token)


UNREADABLE = {
    "a number beyond double precision": b'{"a":1e400}',
    "too many digits": b'{"a":' + b"1" * 5000 + b"}",
    "too many levels": b'{"a":' + b"[" * 3000 + b"]" * 3000 + b"}",
    "no object": b"[1]",
}


@pytest.mark.parametrize("args", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_arguments_that_cannot_be_read_hide_no_job(client: ApiClient, args: bytes) -> None:
    """Other programs write to the database too."""
    store = client.app._client.store
    readable, unreadable = store.enqueue(
        [NewJob(task="greet", args=b'{"a":1}'), NewJob(task="greet", args=args)]
    )
    page = client.get_json("/api/jobs?args=true")["jobs"]
    assert {job["id"]: job["args"] for job in page} == {
        readable.id: {"a": 1},
        unreadable.id: args.decode(),
    }
    shown = client.get_json(f"/api/jobs/{unreadable.id}?args=true")["job"]
    assert shown["args"] == args.decode()


def test_a_long_history_is_cut_to_its_newest_part(
    client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert SHOWN_LIMIT == 1000
    job_id = client.add()
    for verb in (OperatorVerb.PAUSE, OperatorVerb.RESUME) * 3:
        client.act(verb, job_id)
    whole = client.get_json(f"/api/jobs/{job_id}")
    assert (len(whole["timeline"]), whole["complete"]) == (7, True)
    monkeypatch.setattr("freehold.operator.SHOWN_LIMIT", 7)
    assert client.get_json(f"/api/jobs/{job_id}") == whole
    monkeypatch.setattr("freehold.operator.SHOWN_LIMIT", 4)
    newest = client.get_json(f"/api/jobs/{job_id}")
    assert newest["timeline"] == whole["timeline"][-4:]
    assert not newest["complete"]


@pytest.mark.parametrize(
    ("body", "slug", "expected"),
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
def test_an_invalid_job_is_refused(
    client: ApiClient, body: dict[str, object], slug: str, expected: str
) -> None:
    assert expected in problem(client.post("/api/jobs", body), 422, slug)
    assert client.get_json("/api/jobs")["jobs"] == []


def test_a_job_of_an_unknown_task_is_enqueued_with_raw(client: ApiClient) -> None:
    response = client.post("/api/jobs", {"task": "far.away", "args": {"n": 1}, "raw": True})
    assert response.status_code == 201
    assert client.job(response.json()["id"]).args == '{"n":1}'


def test_a_repeated_enqueue_returns_the_existing_job(client: ApiClient) -> None:
    for key in ("unique_key", "idempotency_key"):
        body = {"task": "greet", "args": {"name": "x"}, key: "k"}
        first, second = client.post("/api/jobs", body), client.post("/api/jobs", body)
        assert (first.status_code, second.status_code) == (201, 200)
        assert second.json() == {**first.json(), "created": False}


def test_a_pending_job_is_submitted(client: ApiClient) -> None:
    job_id = client.add(pending=True)
    assert client.job(job_id).state == "pending"
    assert client.post(f"/api/jobs/{job_id}/submit").json() == {
        "id": job_id,
        "status": "done",
        "state": "queued",
    }


def test_a_job_for_later_is_explained(client: ApiClient) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    job_id = client.add(run_at=later.isoformat())
    document = client.get_json(f"/api/jobs/{job_id}/explain")
    assert document["id"] == job_id
    assert [cause["code"] for cause in document["causes"]] == ["not_due"]


def test_jobs_are_listed_by_filter_and_in_pages(client: ApiClient) -> None:
    ids = [client.add(queue="a", tags=["x"], target=f"lane {n}/b") for n in range(5)]
    other = client.add("broken", queue="b")
    client.act(OperatorVerb.PAUSE, ids[0])
    assert _ids(client, "/api/jobs?queue=a") == ids[::-1]
    assert _ids(client, "/api/jobs?state=paused&state=failed") == [ids[0]]
    assert _ids(client, "/api/jobs?task=broken") == [other]
    assert _ids(client, "/api/jobs?target=lane%203/b") == [ids[3]]
    assert _ids(client, "/api/jobs?tag=y") == []
    assert _ids(client, "/api/jobs?queue=null") == []
    found: list[int] = []
    path = "/api/jobs?queue=a&limit=2"
    while True:
        page = client.get_json(path)
        found += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        path = f"/api/jobs?queue=a&limit=2&before={page['next']}"
    assert found == ids[::-1]


@pytest.mark.requirement("N16")
def test_jobs_are_listed_by_error_worker_and_time(client: ApiClient) -> None:
    job_id, before = client.add(), "2000-01-01T00:00:00Z"
    client.act(OperatorVerb.CANCEL, job_id)
    assert _ids(client, "/api/jobs?error=ValueError") == []
    (found,) = client.get_json("/api/jobs")["jobs"]
    assert _ids(client, f"/api/jobs?worker={found['report']['finished_by']}") == [job_id]
    for what in ("created", "finished"):
        assert _ids(client, f"/api/jobs?{what}_since={before}") == [job_id]
        assert _ids(client, f"/api/jobs?{what}_until={before}") == []
    assert client.get_json("/api/jobs")["looked_until"] is None
    client.add()
    assert client.get_json("/api/jobs?limit=1")["looked_until"] is not None


@pytest.mark.requirement("N6", "N16")
def test_jobs_are_listed_by_metadata(client: ApiClient) -> None:
    number, text = client.add(meta={"order": 7, "who": "Ann"}), client.add(meta={"order": "7"})
    assert _ids(client, "/api/jobs?meta=order=7") == [number]
    assert _ids(client, "/api/jobs?meta=order=%227%22") == [text]
    assert _ids(client, "/api/jobs?meta=order=7&meta=who=Ann") == [number]
    assert _ids(client, "/api/jobs?meta=order=7&meta=who=Bob") == []


def _ids(client: ApiClient, path: str) -> list[int]:
    return [job["id"] for job in client.get_json(path)["jobs"]]


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=null",
        "before=null",
        "limit=1001",
        "limit=many",
        "state=lost",
        "error=",
        "meta=order",
        "meta=a=1&meta=a=1",
        "created_since=yesterday",
        "finished_until=2030-01-01T00:00:00",
        "created_since=2030-01-01T00:00:00Z&created_until=2029-01-01T00:00:00Z",
        "before=0",
        "sort=id",
        "queue=a&queue=b",
        "queue=a%20b",
        "target=",
    ],
)
def test_an_invalid_query_is_refused(sqlite_client: ApiClient, query: str) -> None:
    problem(sqlite_client.get(f"/api/jobs?{query}"), 422, "bad-input")


@pytest.mark.requirement("P5")
def test_the_verbs_return_their_status(client: ApiClient) -> None:
    job_id = client.add()
    results = [
        client.post(f"/api/jobs/{job_id}/{verb}", {"reason": "look", "by": "bob"}).json()
        for verb in ("pause", "pause", "resume", "cancel", "cancel", "retry")
    ]
    assert [(response["status"], response["state"]) for response in results] == [
        ("done", "paused"),
        ("already", "paused"),
        ("done", "queued"),
        ("done", "canceled"),
        ("already", "canceled"),
        ("done", "queued"),
    ]
    moments = client.get_json(f"/api/jobs/{job_id}")["timeline"]
    assert {entry["by"] for entry in moments if entry["kind"] == "paused"} == {"bob (local)"}
    assert {entry["reason"] for entry in moments if entry["kind"] == "paused"} == {"look"}


def test_a_running_job_is_asked_to_stop(client: ApiClient) -> None:
    job_id = client.add()
    request = ClaimRequest(owner="w1", lease_seconds=30.0, demands=(QueueDemand("default", 1),))
    assert len(client.app._client.store.claim(request)) == 1
    response = client.post(f"/api/jobs/{job_id}/cancel")
    assert response.json() == {"id": job_id, "status": "requested", "state": "assigned"}
    assert client.get_json(f"/api/jobs/{job_id}")["job"]["stop_request"] == "cancel"


@pytest.mark.requirement("S0.1")
def test_an_illegal_transition_is_a_conflict(client: ApiClient) -> None:
    job_id = client.add()
    detail = problem(client.post(f"/api/jobs/{job_id}/retry"), 409, "illegal-transition")
    assert detail == f"job {job_id} is queued: only a finished job can be retried"


@pytest.mark.requirement("P5")
def test_a_taken_unique_key_names_its_holder(client: ApiClient) -> None:
    first = client.add(unique_key="k")
    client.act(OperatorVerb.CANCEL, first)
    holder = client.add(unique_key="k")
    response = client.post(f"/api/jobs/{first}/retry")
    assert f"job {holder}" in problem(response, 409, "unique-key-taken")
    assert response.json()["holder"] == holder


@pytest.mark.parametrize("path", ["", "/explain", "/cancel", "/pause", "/resume", "/retry"])
def test_an_unknown_id_is_not_found(client: ApiClient, path: str) -> None:
    request = client.get if path in ("", "/explain") else client.post
    response = request(f"/api/jobs/4711{path}")
    assert "there is no job 4711" in problem(response, 404, "job-not-found")


@pytest.mark.parametrize("text", ["x", "0", "-1", "1.5", "9" * 30, "%00"])
def test_an_invalid_id_is_refused(sqlite_client: ApiClient, text: str) -> None:
    problem(sqlite_client.get(f"/api/jobs/{text}"), 422, "bad-input")


def test_a_search_is_another_way_to_write_the_filter(client: ApiClient) -> None:
    mail, _ = client.add(queue="mail"), client.add(queue="other")
    found = client.get_json("/api/jobs", params={"q": "state:queued queue:mail"})
    assert [job["id"] for job in found["jobs"]] == [mail]
    refused = client.get("/api/jobs", params={"q": "quue:mail"})
    assert "did you mean queue:?" in problem(refused, 422, "bad-input")
    twice = client.get("/api/jobs", params={"q": "queue:mail", "queue": "mail"})
    assert "queue was given twice" in problem(twice, 422, "bad-input")
