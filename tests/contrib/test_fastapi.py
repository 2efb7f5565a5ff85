"""A FastAPI application with a queue: lifespan, dependencies, the mounted API, one job followed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest
from fastapi import Depends, FastAPI, HTTPException, Request
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount

from freehold import Freehold, JobNotFound
from freehold.contrib import fastapi as contrib
from freehold.contrib.fastapi import job_events, lifespan
from freehold.dashboard import dashboard
from freehold.http import Caller, Role, api
from freehold.testing import Harness
from tests.contrib.web_client import TestClient

pytestmark = pytest.mark.requirement("N19")


def prefix() -> Iterator[str]:
    yield "order"


Prefix = Annotated[str, Depends(prefix)]


class Shop:
    """One dependency serves requests and jobs."""

    def __init__(self, url: str, **options: Any) -> None:
        self.queue = queue = Freehold(url)
        self.web = web = FastAPI(lifespan=lifespan(queue, **options))

        @queue.task(name="bill")
        async def bill(order: int, prefix: Prefix) -> str:
            return f"{prefix} {order}"

        @web.post("/orders/{order}")
        async def place(order: int, prefix: Prefix) -> dict[str, Any]:
            job = await bill.aenqueue(order)  # type: ignore[call-arg]
            return {"job": job.id, "name": f"{prefix} {order}"}

        @web.get("/orders/{job}/bill")
        async def billed(job: int) -> str:
            return str(await (await queue.ajob(job)).aresult(60))

        @web.get("/orders/{job}/events")
        async def events(job: int, user: str = "") -> Response:
            if user != "ann":
                raise HTTPException(403)
            try:
                return await job_events(queue, job)
            except JobNotFound as error:
                raise HTTPException(404) from error

        self.bill = bill
        web.mount("/queue", api(queue, identify=self._identify))
        web.mount("/dashboard", dashboard(queue, identify=self._identify))

    def _identify(self, request: Request) -> Caller | None:
        users = {"ann": Role.ADMIN, "bob": Role.VIEWER}
        name = request.headers.get("x-user", "")
        return Caller(name, users[name]) if name in users else None


def test_requests_and_jobs_of_one_program_share_dependencies(tmp_path: Path) -> None:
    shop = Shop(str(tmp_path / "jobs.db"), worker=True)
    with TestClient(shop.web) as client:
        placed = client.post("/orders/7").json()
        assert placed["name"] == "order 7"
        assert client.get(f"/orders/{placed['job']}/bill").json() == "order 7"
        followed = client.get(f"/orders/{placed['job']}/events", params={"user": "ann"})
        assert followed.headers["content-type"].startswith("text/event-stream")
        assert "event: end" in followed.text
        assert client.get(f"/orders/{placed['job']}/events").status_code == 403
        for missing in (999, -1, 10**30):
            path = f"/orders/{missing}/events"
            assert client.get(path, params={"user": "ann"}).status_code == 404
    assert shop.queue._opened_client is None


def test_the_mounted_api_and_dashboard_serve_a_test_client_by_the_users_of_the_application(
    tmp_path: Path,
) -> None:
    shop = Shop(str(tmp_path / "jobs.db"))
    with TestClient(shop.web) as client:
        assert client.get("/queue/api/jobs").status_code == 401
        bob, ann = {"X-User": "bob"}, {"X-User": "ann"}
        body = {"task": "bill", "args": {"order": 7}}
        assert client.post("/queue/api/jobs", json=body, headers=bob).status_code == 403
        made = client.post("/queue/api/jobs", json=body, headers=ann).json()
        assert (
            client.get(f"/queue/api/jobs/{made['id']}", headers=bob).json()["job"]["args"] is None
        )
        paths = client.get("/queue/api/openapi.json", headers=bob).json()
        assert paths["servers"] == [{"url": "/queue"}]
        assert client.get("/dashboard/").status_code == 403
        page = client.get("/dashboard/jobs", headers=bob)
        assert (page.status_code, "bill" in page.text) == (200, True)


def test_a_test_of_a_route_runs_its_jobs_in_a_harness(tmp_path: Path) -> None:
    shop = Shop(str(tmp_path / "never.db"))
    with Harness(shop.queue) as queue, shop.queue.override(prefix, lambda: "fake"):
        client = TestClient(shop.web)  # without `with`: its lifespan would close the harness' store
        job = client.post("/orders/7").json()["job"]
        queue.assert_enqueued(shop.bill, 7)
        queue.run(raise_errors=True)
        assert shop.queue.job(job).result() == "fake 7"
    assert not (tmp_path / "never.db").exists()


def test_a_stream_of_a_job_that_waits_ends_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server waits for open responses when it stops."""
    assert contrib.STREAM_SECONDS <= 30
    monkeypatch.setattr(contrib, "STREAM_SECONDS", 0.0)
    with TestClient(Shop(str(tmp_path / "jobs.db")).web) as client:
        placed = client.post("/orders/7").json()
        followed = client.get(f"/orders/{placed['job']}/events", params={"user": "ann"}).text
    assert "event: job" in followed
    assert "event: end" not in followed


def test_a_lifespan_of_the_application_is_around_that_of_the_queue(tmp_path: Path) -> None:
    ended: list[bool] = []
    queue = Freehold(str(tmp_path / "jobs.db"))
    queue.migrate()

    @asynccontextmanager
    async def own(web: Starlette) -> AsyncIterator[dict[str, str]]:
        yield {"pool": "open"}
        ended.append(queue._opened_client is None)

    web = Starlette(
        lifespan=lifespan(queue, own),
        routes=[Mount("/queue", api(queue, identify=lambda _: Caller("ann", Role.VIEWER)))],
    )
    with TestClient(web) as client:
        assert client.get("/queue/api/jobs").json()["jobs"] == []
        assert client.app_state == {"pool": "open"}
    assert ended == [True]
