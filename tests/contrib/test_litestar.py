"""A Litestar application with the plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from litestar import Litestar, post
from litestar.di import NamedDependency
from litestar.testing import TestClient
from starlette.requests import Request

from freehold import Freehold
from freehold.contrib.litestar import FreeholdPlugin
from freehold.http import Caller, Role

pytestmark = pytest.mark.requirement("N19")


def identify(request: Request) -> Caller | None:
    return Caller("ann", Role.VIEWER) if request.headers.get("x-user") == "ann" else None


def test_the_plugin_gives_routes_the_app_runs_a_worker_and_mounts_the_api(tmp_path: Path) -> None:
    app = Freehold(str(tmp_path / "jobs.db"))

    @app.task(name="double")
    async def double(n: int) -> int:
        return 2 * n

    @post("/double")
    async def call(queue: NamedDependency[Freehold]) -> dict[str, Any]:
        assert queue is app
        return {"result": await double.acall(4)}

    plugin = FreeholdPlugin(app, worker=True, mount="/queue", identify=identify)
    with TestClient(Litestar([call], plugins=[plugin])) as client:
        assert client.post("/double").json() == {"result": 8}
        assert client.get("/queue/api/jobs").status_code == 401
        (job,) = client.get("/queue/api/jobs", headers={"X-User": "ann"}).json()["jobs"]
        assert (job["task"], job["state"]) == ("double", "succeeded")
        described = client.get("/queue/api/openapi.json", headers={"X-User": "ann"}).json()
        assert described["servers"] == [{"url": "/queue"}]
        resumed = client.post("/queue/targets/a%20b/jobs/1/resume/", json={})
        assert resumed.status_code == 401  # and not 404
    assert app._opened_client is None


def test_the_commands_of_freehold_are_those_of_litestar_too() -> None:
    cli = click.Group("litestar")
    FreeholdPlugin(Freehold("sqlite://:memory:"), name="jobs").on_cli_init(cli)
    done = CliRunner().invoke(cli, ["jobs", "version"])
    assert done.exit_code == 0, done.output
    assert "freehold" in done.output
