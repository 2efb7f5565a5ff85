"""Errors: an unavailable or slow database, an invalid or too large request, a bug."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path

import httpx
import psycopg
import pytest

from freehold import errors
from freehold.errors import FreeholdError
from freehold.http.problems import hidden_detail, of_error
from freehold.http.request_limits import RequestLimits
from freehold.operator import AsyncOperator
from freehold.store.verbs import queries
from tests.http.api_client import ApiClient, app_on, bearer, problem, settings_with


@pytest.fixture
def down(tmp_path: Path) -> Iterator[ApiClient]:
    client = ApiClient(app_on("postgresql://127.0.0.1:1/none"), tmp_path)
    yield client
    client.close()


def test_livez_succeeds_with_the_database_down(down: ApiClient) -> None:
    assert down.get_json("/livez") == {"status": "alive"}


def test_other_routes_return_503_with_the_database_down(down: ApiClient) -> None:
    for path in ("/readyz", "/api/jobs", "/api/jobs/1", "/api/queues", "/api/stats", "/api/events"):
        response = down.get(path)
        problem(response, 503, "store-unavailable")
        assert response.headers["retry-after"] == "1"
    problem(down.post("/api/jobs", {"task": "x", "raw": True}), 503, "store-unavailable")


@pytest.mark.parametrize("by", ["token", "API"])
def test_a_caller_of_one_tenant_does_not_see_the_address_of_the_database(
    down: ApiClient, tokens: list[str], caplog: pytest.LogCaptureFixture, by: str
) -> None:
    role, tenant = ("admin@ours", None) if by == "token" else ("admin", "ours")
    down.open(settings_with(down.folder, *tokens), tenant=tenant)
    headers = bearer(role)
    for path in ("/api/jobs", "/api/events", "/api/tenants", "/api/tenants/ours", "/api/limits"):
        detail = problem(down.get(path, headers=headers), 503, "store-unavailable")
        assert detail == "the database is not available at present: try again later"
    assert "127.0.0.1:1/none" in caplog.text
    down.open(settings_with(down.folder, *tokens))
    response = down.get("/api/jobs", headers=bearer("admin"))
    assert "127.0.0.1:1/none" in problem(response, 503, "store-unavailable")


def test_a_caller_of_one_tenant_does_not_see_the_path_of_a_file(
    tmp_path: Path, tokens: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    client = ApiClient(app_on(str(tmp_path / "missing" / "jobs.db")), tmp_path)
    try:
        client.open(settings_with(tmp_path, *tokens))
        response = client.get("/api/jobs", headers=bearer("admin@ours"))
        assert "missing" not in problem(response, 503, "store-unavailable")
        assert str(tmp_path / "missing") in caplog.text
    finally:
        client.close()


def test_metrics_show_the_unavailable_store_and_the_counters_of_the_process(
    down: ApiClient,
) -> None:
    down.telemetry.count("recovered", 3)
    text = down.get("/metrics").text
    assert "freehold_store_up 0\n" in text
    assert "freehold_recovered_total 3\n" in text


def test_readyz_names_a_missing_schema(tmp_path: Path, postgres_url: str) -> None:
    client = ApiClient(app_on(postgres_url), tmp_path)
    client.open(settings_with(tmp_path), RequestLimits(ready_valid_seconds=0.0))
    try:
        assert problem(client.get("/readyz"), 503, "store-unavailable").endswith("SchemaMissing")
        client.app.migrate()
        assert client.get_json("/readyz") == {"status": "ready"}
    finally:
        client.close()


def test_many_requests_for_readiness_share_one_statement(
    client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    async def counted(operator: AsyncOperator) -> datetime:
        nonlocal asked
        asked += 1
        return await operator.run(queries.now())

    monkeypatch.setattr(AsyncOperator, "now", counted)
    client.open(settings_with(client.folder), RequestLimits(ready_valid_seconds=3600.0))

    async def flood() -> list[int]:
        transport = httpx.ASGITransport(client.api)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as caller:
            found = await asyncio.gather(*(caller.get("/readyz") for _ in range(50)))
        return [response.status_code for response in found]

    assert client.run(flood()) + client.run(flood()) == [200] * 100
    assert asked == 1
    client.open(settings_with(client.folder), RequestLimits(ready_valid_seconds=0.0))
    assert [client.get("/readyz").status_code for _ in range(3)] == [200] * 3
    assert asked == 4


def test_readiness_is_checked_again_after_a_while(postgres_client: ApiClient) -> None:
    client = postgres_client
    client.open(settings_with(client.folder), RequestLimits(ready_valid_seconds=0.0))
    assert client.get("/readyz").status_code == 200
    with psycopg.connect(client.app.url, autocommit=True) as other:
        other.execute("drop schema freehold cascade")
    for _ in range(2):
        problem(client.get("/readyz"), 503, "store-unavailable")


def test_a_request_that_takes_too_long_is_ended(postgres_client: ApiClient) -> None:
    client = postgres_client
    client.open(settings_with(client.folder), RequestLimits(request_seconds=2.0, ready_seconds=1.0))
    job_id = client.add()
    with psycopg.connect(client.app.url) as other:
        other.execute("lock table freehold.job")
        problem(client.get("/api/jobs"), 503, "store-unavailable")
        response = client.post(f"/api/jobs/{job_id}/pause")
        assert "may have happened or not" in problem(response, 503, "outcome-unknown")
        assert "freehold_store_up 0\n" in client.get("/metrics").text
    assert client.get_json(f"/api/jobs/{job_id}")["job"]["state"] == "queued"


def test_a_body_is_not_read_beyond_the_limit(sqlite_client: ApiClient) -> None:
    sqlite_client.open(settings_with(sqlite_client.folder), RequestLimits(body_bytes=1000))
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 100
            yield b" " * 100
            await asyncio.sleep(0)

    json = {"Content-Type": "application/json"}
    response = sqlite_client.request("POST", "/api/jobs", content=endless(), headers=json)
    assert "at most 1,000 bytes" in problem(response, 413, "content-too-large")
    assert read <= 1200
    announced = sqlite_client.request("POST", "/api/jobs", content=b"x" * 1001, headers=json)
    problem(announced, 413, "content-too-large")


def test_a_body_that_does_not_arrive_is_an_error_of_the_client(sqlite_client: ApiClient) -> None:
    sqlite_client.open(settings_with(sqlite_client.folder), RequestLimits(request_seconds=0.05))

    async def stuck() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    json = {"Content-Type": "application/json"}
    response = sqlite_client.request("POST", "/api/jobs", content=stuck(), headers=json)
    assert "nothing was written" in problem(response, 408, "request-timeout")


@pytest.mark.parametrize(
    "body", [b"{", b"\xff\xfe", b'{"task": "\xff"}', b"[" * 100_000, b"nope", b'{"a":"\\ud800"}']
)
def test_a_body_that_is_not_json_is_refused(sqlite_client: ApiClient, body: bytes) -> None:
    json = {"Content-Type": "application/json; charset=utf-8"}
    response = sqlite_client.request("POST", "/api/jobs", content=body, headers=json)
    assert response.status_code in (400, 422), response.text
    assert response.headers["content-type"] == "application/problem+json"


def test_arguments_beyond_the_limits_are_refused(client: ApiClient) -> None:
    deep: object = "x"
    for _ in range(80):
        deep = [deep]
    body = {"task": "any", "raw": True, "args": {"a": deep}}
    assert "64 levels" in problem(client.post("/api/jobs", body), 422, "bad-payload")
    body = {"task": "any", "raw": True, "args": {"a": "x" * 1024 * 1024}}
    assert "the limit is" in problem(client.post("/api/jobs", body), 422, "bad-payload")


_WITH_A_JOB = (errors.UniqueKeyTaken, errors.NoResult)


def test_every_error_of_the_tree_is_mapped() -> None:
    kinds = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, FreeholdError)
    ]
    made = {
        kind.__name__: of_error(kind("why", 7) if issubclass(kind, _WITH_A_JOB) else kind("why"))
        for kind in kinds
    }
    statuses = {name: response.status_code for name, response in made.items()}
    assert statuses == {
        "FreeholdError": 500,
        "NoResult": 500,
        "JobFailed": 500,
        "JobCanceled": 500,
        "ResultTimeout": 500,
        "BadResult": 500,
        "BadInput": 422,
        "BadName": 422,
        "BadArguments": 422,
        "BadPayload": 422,
        "BadSettings": 422,
        "UnknownTask": 422,
        "Refused": 409,
        "IllegalTransition": 409,
        "JobNotFound": 404,
        "ScheduleNotFound": 404,
        "BulkNotFound": 404,
        "FlowNotFound": 404,
        "UniqueKeyTaken": 409,
        "LeaseLost": 409,
        "TenantExists": 409,
        "TenantNotFound": 404,
        "StoreError": 500,
        "StoreUnavailable": 503,
        "StoreDenied": 503,
        "OutcomeUnknown": 503,
        "StoreReadOnly": 503,
        "StoreFull": 503,
        "MissingPrivilege": 503,
        "RowRefused": 500,
        "SequenceBehind": 503,
        "SchemaMissing": 503,
        "SchemaTooNew": 503,
    }


def test_the_text_of_every_error_of_the_store_is_hidden_from_tenants() -> None:
    kinds: list[type[Exception]] = [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, Exception)
    ]
    hidden = {kind for kind in kinds if hidden_detail(kind.__new__(kind)) is not None}
    of_the_store = {kind for kind in kinds if issubclass(kind, errors.StoreError)}
    assert hidden == {errors.BadSettings, *of_the_store}


def test_the_text_of_a_bug_goes_only_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        response = of_error(ZeroDivisionError("inner secret"))
    assert response.status_code == 500
    assert b"inner secret" not in bytes(response.body)
    assert "inner secret" in caplog.text
