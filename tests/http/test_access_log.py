"""The log of writes and of denied requests."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.requests import Request

from freehold import Freehold
from freehold.http import api
from freehold.http.access_log import LINES_PER_MINUTE, AccessLog
from freehold.telemetry import Telemetry
from tests.http.api_client import TOKENS, ApiClient, bearer, settings_with
from tests.worker.test_metrics import numbers

HERE = ("10.1.2.3", 9)


@pytest.fixture(autouse=True)
def _all_levels(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.DEBUG, "freehold"):
        yield


def _lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [each.getMessage() for each in caplog.records if each.name == "freehold"]
    caplog.clear()
    return found


def test_every_write_is_logged_with_its_caller_and_address(
    client: ApiClient, tokens: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    client.open(settings_with(client.folder, *tokens))
    admin = bearer("admin")
    body = {"task": "greet", "args": {"name": "secret-name"}}
    assert client.post("/api/jobs", body, headers=admin, peer=HERE).status_code == 201
    client.post("/api/tenants", {"name": "acme"}, headers=admin, peer=HERE)
    drop = {"name": "acme", "force": True}
    client.post("/api/tenants/acme/drop", drop, headers=admin, peer=HERE)
    client.post("/api/limits/all", {"max": 0}, headers=admin, peer=HERE)
    client.post("/api/jobs/77/cancel", headers=bearer("operator"), peer=HERE)
    lines = _lines(caplog)
    assert lines == [
        "POST /api/jobs by admin (token 3) from 10.1.2.3: 201",
        "POST /api/tenants by admin (token 3) from 10.1.2.3: 201",
        "POST /api/tenants/acme/drop by admin (token 3) from 10.1.2.3: 200",
        "POST /api/limits/all by admin (token 3) from 10.1.2.3: 200",
        "POST /api/jobs/77/cancel by operator (token 2) from 10.1.2.3: 404",
    ]
    client.get_json("/api/jobs?args=true", headers=admin)
    assert _lines(caplog) == []  # a read


def test_a_path_cannot_forge_a_line_or_fill_the_log(
    sqlite_client: ApiClient, caplog: pytest.LogCaptureFixture
) -> None:
    sqlite_client.post("/api/lanes/a%1B%5B2J%E2%80%AE/pause")
    assert _lines(caplog) == [
        "POST /api/lanes/a%1B%5B2J%E2%80%AE/pause by local from 127.0.0.1: 422"
    ]
    sqlite_client.post(f"/api/lanes/{'x' * 9999}/pause")
    (line,) = _lines(caplog)
    assert len(line) < 300


def test_denied_requests_are_logged_and_counted(
    sqlite_client: ApiClient, tokens: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    client = sqlite_client
    client.open(settings_with(client.folder, *tokens))
    wrong = {"Authorization": f"Bearer {TOKENS['admin'][:-1]}"}
    assert client.get("/api/stats", headers=wrong, peer=HERE).status_code == 401
    assert client.post("/api/jobs", headers=bearer("viewer"), peer=HERE).status_code == 403
    assert client.get("/api/jobs?args=true", headers=bearer("viewer")).status_code == 403
    lines = _lines(caplog)
    assert lines == [
        "denied (401): GET /api/stats by an unknown caller from 10.1.2.3",
        "denied (403): POST /api/jobs by viewer (token 1) from 10.1.2.3",
        "denied (403): GET /api/jobs by viewer (token 1) from 127.0.0.1",
    ]
    assert "token-chosen-by-chance" not in "".join(lines)
    found = numbers(client.get("/metrics", headers=bearer("viewer")).text)
    name = "freehold_http_denied_total"
    denied = {status: found[name, frozenset({("status", status)})] for status in ("401", "403")}
    assert denied == {"401": 1, "403": 2}


def test_an_api_inside_another_application_counts_denied_requests(tmp_path: Path) -> None:
    app = Freehold(str(tmp_path / "jobs.db"))
    service = api(app, settings_with(tmp_path, "local")).state.service
    scope = {"type": "http", "method": "GET", "path": "/api/stats", "headers": []}
    service.access_log.add(Request(scope), None, 401)
    assert service.telemetry.total("http_denied", "401") == 1
    app.close()


def test_a_flood_of_denied_requests_writes_a_few_lines_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    time, telemetry = 100.0, Telemetry()
    access_log = AccessLog(telemetry, now=lambda: time)
    scope = {"type": "http", "method": "GET", "path": "/api/stats", "headers": []}

    def flood(number: int) -> list[str]:
        for _ in range(number):
            access_log.add(Request(scope), None, 401)
        return _lines(caplog)

    assert len(flood(500)) == LINES_PER_MINUTE
    time += 59.0
    assert flood(500) == []
    time += 2.0
    first, *rest = flood(500)
    assert first == "990 more denied requests not logged"
    assert len(rest) == LINES_PER_MINUTE
    assert telemetry.total("http_denied", "401") == 1500
    time += 3600.0
    assert len(flood(1)) == 2
    time += 3600.0
    assert len(flood(1)) == 1  # a quiet minute needs no summary
