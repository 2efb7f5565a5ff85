"""GET /api/jobs/{id}?wait=: bounded, counted, and with the rights of the job's page."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from freehold import State
from freehold.client import Client
from freehold.http import jobs
from freehold.http.request_limits import RequestLimits
from freehold.model.job import JobEnd
from tests.concurrency import wait_until
from tests.http.api_client import ApiClient, bearer, settings_with

pytestmark = pytest.mark.requirement("N5")


async def _get(client: ApiClient, path: str, caller: str | None = None) -> httpx.Response:
    transport = httpx.ASGITransport(client.api, client=("127.0.0.1", 1))
    headers = {} if caller is None else bearer(caller)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        return await http.get(path, headers=headers)


async def _waits(client: ApiClient, number: int) -> None:
    """Until so many requests wait."""
    streams = client.api.state.service.streams
    await asyncio.to_thread(wait_until, lambda: streams.count >= number, "the requests wait")


def test_the_response_comes_with_the_end_of_the_job(client: ApiClient) -> None:
    job_id = client.add(args={"name": "ann"})

    async def scenario() -> httpx.Response:
        waiting = asyncio.create_task(_get(client, f"/api/jobs/{job_id}?wait=60"))
        await _waits(client, 1)
        assert await client.app.arun_worker(until_idle=True) == 0
        return await waiting

    response = client.run(scenario())
    assert response.status_code == 200
    assert response.json()["job"]["report"]["result"] == "hello ann"
    assert client.api.state.service.streams.count == 0


def test_a_wait_that_is_over_shows_the_job_as_it_is(client: ApiClient) -> None:
    job_id = client.add()
    client.open(settings_with(client.folder), RequestLimits(request_seconds=10.0))
    assert client.get_json(f"/api/jobs/{job_id}?wait=0.01")["job"]["state"] == State.QUEUED


def test_a_wait_may_last_longer_than_other_requests(sqlite_client: ApiClient) -> None:
    client = sqlite_client
    job_id = client.add()
    client.open(settings_with(client.folder), RequestLimits(request_seconds=1.0))
    assert client.get(f"/api/jobs/{job_id}?wait=1.5").status_code == 200


def test_a_long_wait_does_not_begin_again_and_again(
    sqlite_client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new wait is read many times in its first second."""
    waits: list[float | None] = []
    wait_async = Client.wait_async

    async def recorded(client: Client, job_id: int, seconds: float | None) -> JobEnd | None:
        waits.append(seconds)
        return await wait_async(client, job_id, seconds)

    monkeypatch.setattr(Client, "wait_async", recorded)
    monkeypatch.setattr(jobs, "_CLOSING_SECONDS", 0.01)
    job_id = sqlite_client.add()
    assert sqlite_client.get(f"/api/jobs/{job_id}?wait=0.1").status_code == 200
    assert waits == [0.1]


@pytest.mark.parametrize("wait", ["61", "-1", "nan", "soon"])
def test_a_wait_without_bounds_is_refused(sqlite_client: ApiClient, wait: str) -> None:
    job_id = sqlite_client.add()
    assert sqlite_client.get(f"/api/jobs/{job_id}?wait={wait}").status_code == 422


def test_an_unknown_job_is_not_waited_for(client: ApiClient) -> None:
    assert client.get("/api/jobs/4711?wait=60").status_code == 404


def test_waits_cannot_use_up_the_service(sqlite_client: ApiClient) -> None:
    client = sqlite_client
    job_id = client.add()
    client.open(settings_with(client.folder), RequestLimits(streams=3))

    async def scenario() -> list[int]:
        path = f"/api/jobs/{job_id}?wait=60"
        waiting = [asyncio.create_task(_get(client, path)) for _ in range(3)]
        await _waits(client, 3)
        refused = await _get(client, path)
        shown = await _get(client, f"/api/jobs/{job_id}")
        client.api.state.service.closing = True
        ended = [each.status_code for each in await asyncio.gather(*waiting)]
        return [refused.status_code, shown.status_code, *ended]

    assert client.run(scenario()) == [503, 200, 200, 200, 200]


def test_a_caller_of_another_tenant_cannot_wait_for_the_job(
    client: ApiClient, tokens: list[str]
) -> None:
    for name in ("ours", "other"):
        client.app.tenants.create(name)
    job_id = client.app.tenant("ours").task(name="tenants.greet")(_greet).enqueue().id
    client.open(settings_with(client.folder, *tokens))
    for caller, status in (("admin@other", 404), ("admin@ours", 200)):
        found = client.run(_get(client, f"/api/jobs/{job_id}?wait=0.01", caller))
        assert found.status_code == status, caller


def _greet() -> None: ...
