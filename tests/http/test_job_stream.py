"""One job as server-sent events."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from freehold import Context, Freehold
from freehold.http.request_limits import RequestLimits
from tests.http.api_client import ApiClient, problem, settings_with
from tests.worker.in_loop_worker import until

pytestmark = pytest.mark.requirement("N19")
QUICK = RequestLimits(stream_poll_seconds=0.01)


def messages(text: str) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for part in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in part.splitlines() if line)
        if "event" in lines:
            found.append((lines["event"], json.loads(lines["data"])))
    return found


def test_a_stream_shows_progress_and_ends_with_the_job(client: ApiClient) -> None:
    app, moved = client.app, asyncio.Event()

    @app.task(name="counts")
    async def counts(ctx: Context) -> str:
        ctx.progress(1, 2, "half")
        await moved.wait()
        return "done"

    async def scenario(app: Freehold) -> list[tuple[str, dict[str, Any]]]:
        job = await counts.aenqueue()
        transport = httpx.ASGITransport(client.api, client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            following = asyncio.create_task(http.get(f"/api/jobs/{job.id}/events"))
            worker = asyncio.create_task(app.arun_worker(until_idle=True))
            await until(lambda: job.read().progress is not None)
            moved.set()
            await worker
            response = await following
        assert response.headers["content-type"].startswith("text/event-stream")
        return messages(response.text)

    client.open(settings_with(client.folder), QUICK)
    found = client.run(scenario(app))
    assert [event for event, _ in found][-1] == "end"
    assert {event for event, _ in found[:-1]} == {"job"}
    end = found[-1][1]
    assert (end["state"], end["report"]["result"], end["args"]) == ("succeeded", "done", None)
    assert end["progress"]["message"] == "half"


def test_a_stream_of_a_finished_job_is_its_end_and_of_an_unknown_one_an_error(
    sqlite_client: ApiClient,
) -> None:
    job_id = sqlite_client.add()
    sqlite_client.post(f"/api/jobs/{job_id}/cancel", {"reason": "not needed"})
    ((event, job),) = messages(sqlite_client.get(f"/api/jobs/{job_id}/events").text)
    assert (event, job["state"], job["reason"]) == ("end", "canceled", "not needed")
    problem(sqlite_client.get("/api/jobs/999/events"), 404, "job-not-found")


def test_a_stream_ends_after_its_time_and_is_counted_until_then(sqlite_client: ApiClient) -> None:
    job_id = sqlite_client.add()
    sqlite_client.open(settings_with(sqlite_client.folder), RequestLimits(stream_seconds=0))
    ((event, job),) = messages(sqlite_client.get(f"/api/jobs/{job_id}/events").text)
    assert (event, job["state"]) == ("job", "queued")
    sqlite_client.open(settings_with(sqlite_client.folder), RequestLimits(streams=0))
    problem(sqlite_client.get(f"/api/jobs/{job_id}/events"), 503, "too-many-streams")
