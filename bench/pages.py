"""The cost of each page of the dashboard, requested in this process without a network."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx

from freehold import Freehold
from freehold.dashboard import dashboard
from freehold.settings import load

#: By its name in the table. {job}: the newest job; {batch}, {workflow}: the only ones.
PAGES = {
    "page: overview": "/",
    "page: jobs": "/jobs",
    "page: jobs, failed": "/jobs?state=failed",
    "page: job": "/jobs/{job}",
    "page: failures": "/failures",
    "page: queues": "/queues",
    "page: queue": "/queues/q0",
    "page: lanes": "/lanes",
    "page: lane": "/lanes/lane1",
    "page: limits": "/limits",
    "page: tasks": "/tasks",
    "page: task": "/tasks/t1",
    "page: workers": "/workers",
    "page: worker": "/workers/w1",
    "page: schedules": "/schedules",
    "page: batches": "/batches",
    "page: batch": "/flows/{batch}",
    "page: workflows": "/workflows",
    "page: workflow": "/flows/{workflow}",
    "page: events": "/events",
    "page: bulk": "/bulk",
    "page: audit": "/audit",
    "page: system": "/system",
}


class PageReader:
    """A browser on this machine, for one dashboard."""

    def __init__(self, app: Freehold) -> None:
        self._app = app
        self._runner = asyncio.Runner()
        settings = load({"http.tokens": "local"}, {}, Path("/"))
        transport = httpx.ASGITransport(dashboard(app, settings), client=("127.0.0.1", 1))
        self._http = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    def get(self, path: str) -> None:
        response = self._runner.run(self._http.get(path))
        if response.status_code != 200:
            raise SystemExit(f"bench: {path} has the status {response.status_code}")

    def close(self) -> None:
        self._runner.run(self._http.aclose())
        self._runner.run(self._app._database.aclose())
        self._runner.close()
        self._app.close()
