"""The example application: two web processes and two workers, used over HTTP."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from psycopg.conninfo import conninfo_to_dict

from freehold import Freehold, JobFilter
from tests.django.shop_project import LIMIT_SECONDS, wait_for

EXAMPLE = Path(__file__).parents[2] / "examples" / "django_shop"


@contextlib.contextmanager
def started(environment: dict[str, str], *command: str) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, *command], cwd=EXAMPLE, env=environment, start_new_session=True
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LIMIT_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def settings_of(url: str) -> dict[str, str]:
    given = conninfo_to_dict(url)
    names = {"dbname": "DATABASE", "host": "HOST", "port": "PORT", "user": "USER"}
    own = ("FREEHOLD_URL", "FREEHOLD_APP", "DATABASE_URL", "DJANGO_SETTINGS_MODULE")
    return {
        **{name: value for name, value in os.environ.items() if name not in own},
        **{f"SHOP_{theirs}": str(given[ours]) for ours, theirs in names.items() if ours in given},
    }


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def manage(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=EXAMPLE,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.requirement("N18")
def test_orders_are_billed_by_the_workers(postgres_url: str) -> None:
    environment, port = settings_of(postgres_url), free_port()
    manage(environment, "migrate", "--run-syncdb", "-v", "0")
    web = ("-m", "gunicorn", "website.wsgi", "--no-control-socket", "--workers", "2", "--bind")
    workers = ("--default-count", "2", "--max-count", "2", "--no-http")
    with (
        started(environment, *web, f"127.0.0.1:{port}"),
        started(environment, "manage.py", "freehold", "up", *workers),
        contextlib.closing(Freehold(postgres_url)) as app,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=LIMIT_SECONDS) as client,
    ):
        wait_for(lambda: _is_served(client))
        wait_for(lambda: len(app.operator.workers()) == 2)
        made = [
            client.post("/orders/", data={"customer": f"c{n % 3}", "cents": str(100 + n)})
            for n in range(12)
        ]
        assert {answer.status_code for answer in made} == {201}
        assert client.post("/orders/", data={"customer": "", "cents": "5"}).status_code == 400

        def bills() -> list[str]:
            answers = [client.get(f"/orders/{each.json()['order']}/").json() for each in made]
            ended = all(each["status"] == "SUCCESSFUL" for each in answers)
            return [each["bill"] for each in answers] if ended else []

        assert wait_for(bills)[5] == "c2 owes 1.05"
        assert len(app.operator.jobs(JobFilter(limit=100)).jobs) == 12  # none of the refused order


def _is_served(client: httpx.Client) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return client.get("/orders/1/").status_code == 404
    return False


def test_the_tests_of_the_example_pass(tmp_path: Path) -> None:
    environment = {**settings_of("dbname=unused"), "SHOP_FILE": str(tmp_path / "shop.db")}
    del environment["SHOP_DATABASE"]
    assert "\nOK\n" in manage(environment, "test")
