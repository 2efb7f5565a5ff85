"""The database is away or slow, the request too large or cut off, or it is our own mistake."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from freehold import errors
from freehold.errors import FreeholdError, UniqueKeyTaken
from freehold.http.problems import of_error
from freehold.http.request_limits import RequestLimits
from tests.http.desk import Desk, app_on, problem, settings_with


@pytest.fixture
def down(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(app_on("postgresql://127.0.0.1:1/none"), tmp_path)
    yield desk
    desk.close()


def test_livez_answers_with_the_database_down(down: Desk) -> None:
    assert down.told("/livez") == {"status": "alive"}


def test_everything_else_says_that_it_is(down: Desk) -> None:
    for path in ("/readyz", "/api/jobs", "/api/jobs/1", "/api/queues", "/api/stats", "/api/events"):
        answer = down.get(path)
        problem(answer, 503, "store-unavailable")
        assert answer.headers["retry-after"] == "1"
    problem(down.post("/api/jobs", {"task": "x", "raw": True}), 503, "store-unavailable")


def test_metrics_say_that_the_store_is_away_and_what_the_process_has_counted(down: Desk) -> None:
    down.telemetry.count("recovered", 3)
    text = down.get("/metrics").text
    assert "freehold_store_up 0\n" in text
    assert "freehold_recovered_total 3\n" in text


def test_readyz_says_when_the_schema_is_missing(tmp_path: Path, postgres_url: str) -> None:
    desk = Desk(app_on(postgres_url), tmp_path)
    try:
        assert problem(desk.get("/readyz"), 503, "store-unavailable").endswith("SchemaMissing")
        desk.app.migrate()
        assert desk.told("/readyz") == {"status": "ready"}
    finally:
        desk.close()


def test_a_request_that_takes_too_long_is_ended(postgres_desk: Desk) -> None:
    desk = postgres_desk
    desk.open(settings_with(desk.folder), RequestLimits(request_seconds=2.0, ready_seconds=1.0))
    job_id = desk.add()
    with psycopg.connect(desk.app.url) as other:
        other.execute("lock table freehold.job")
        problem(desk.get("/api/jobs"), 503, "store-unavailable")
        answer = desk.post(f"/api/jobs/{job_id}/pause")
        assert "may have happened or not" in problem(answer, 503, "outcome-unknown")
        assert "freehold_store_up 0\n" in desk.get("/metrics").text
    assert desk.told(f"/api/jobs/{job_id}")["job"]["state"] == "queued"


def test_a_body_is_not_read_beyond_the_limit(sqlite_desk: Desk) -> None:
    sqlite_desk.open(settings_with(sqlite_desk.folder), RequestLimits(body_bytes=1000))
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 100
            yield b" " * 100
            await asyncio.sleep(0)

    json = {"Content-Type": "application/json"}
    answer = sqlite_desk.ask("POST", "/api/jobs", content=endless(), headers=json)
    assert "at most 1,000 bytes" in problem(answer, 413, "content-too-large")
    assert read <= 1200
    announced = sqlite_desk.ask("POST", "/api/jobs", content=b"x" * 1001, headers=json)
    problem(announced, 413, "content-too-large")


@pytest.mark.parametrize(
    "body", [b"{", b"\xff\xfe", b'{"task": "\xff"}', b"[" * 100_000, b"nope", b'{"a":"\\ud800"}']
)
def test_what_is_no_json_is_refused(sqlite_desk: Desk, body: bytes) -> None:
    json = {"Content-Type": "application/json; charset=utf-8"}
    answer = sqlite_desk.ask("POST", "/api/jobs", content=body, headers=json)
    assert answer.status_code in (400, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_arguments_beyond_the_limits_are_refused(desk: Desk) -> None:
    deep: object = "x"
    for _ in range(80):
        deep = [deep]
    body = {"task": "any", "raw": True, "args": {"a": deep}}
    assert "64 levels" in problem(desk.post("/api/jobs", body), 422, "bad-payload")
    body = {"task": "any", "raw": True, "args": {"a": "x" * 1024 * 1024}}
    assert "the limit is" in problem(desk.post("/api/jobs", body), 422, "bad-payload")


def test_every_error_of_the_tree_is_mapped() -> None:
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, FreeholdError)
    ]
    made = {
        kind.__name__: of_error(kind("why", 7) if kind is UniqueKeyTaken else kind("why"))
        for kind in kinds
    }
    statuses = {name: answer.status_code for name, answer in made.items()}
    assert statuses == {
        "FreeholdError": 500,
        "BadInput": 422,
        "BadName": 422,
        "BadArguments": 422,
        "BadPayload": 422,
        "BadSettings": 422,
        "UnknownTask": 422,
        "Refused": 409,
        "IllegalTransition": 409,
        "JobNotFound": 404,
        "UniqueKeyTaken": 409,
        "LeaseLost": 409,
        "TenantExists": 409,
        "TenantNotFound": 404,
        "StoreError": 500,
        "StoreUnavailable": 503,
        "OutcomeUnknown": 503,
        "StoreReadOnly": 503,
        "StoreFull": 503,
        "SchemaMissing": 503,
        "SchemaTooNew": 503,
    }


def test_a_bug_is_told_to_the_log_and_to_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        answer = of_error(ZeroDivisionError("inner secret"))
    assert answer.status_code == 500
    assert b"inner secret" not in bytes(answer.body)
    assert "inner secret" in caplog.text
