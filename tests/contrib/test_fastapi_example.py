"""The example application, as its processes: two of the web server and two workers."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.concurrency import DEADLINE_SECONDS, wait_until

pytestmark = pytest.mark.requirement("N19")
EXAMPLE = Path(__file__).parents[2] / "examples" / "fastapi"
ANN, BOB = {"X-Token": "token-of-ann"}, {"X-Token": "token-of-bob"}


#: With the file of an open socket, and two processes each. gunicorn loads the application before it
#: forks them.
SERVERS = {
    "uvicorn": ("uvicorn", "shop:web", "--workers", "2", "--fd"),
    "gunicorn": (
        *("gunicorn", "shop:web", "-k", "asgi", "--preload", "--no-control-socket"),
        *("--workers", "2", "--bind"),
    ),
}


@pytest.fixture(params=SERVERS)
def shop(
    request: pytest.FixtureRequest, tmp_path: Path, postgres_url: str
) -> Iterator[httpx.Client]:
    env = {name: text for name, text in os.environ.items() if not name.startswith("FREEHOLD")}
    env |= {"PYTHONPATH": str(EXAMPLE), "FREEHOLD_URL": postgres_url}
    python = [sys.executable, "-m"]
    command = [*python, "freehold", "migrate", "--app", "shop:queue"]
    subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True, timeout=120)
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        file = f"{'fd://' if request.param == 'gunicorn' else ''}{listener.fileno()}"
        for command in (
            [*python, *SERVERS[request.param], file],
            *[[*python, "freehold", "worker", "--app", "shop:queue", "--concurrency", "2"]] * 2,
        ):
            process = subprocess.Popen(
                command,
                cwd=tmp_path,
                env=env,
                pass_fds=[listener.fileno()],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(process.wait, DEADLINE_SECONDS)
            stack.callback(process.terminate)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        yield stack.enter_context(httpx.Client(base_url=address, timeout=DEADLINE_SECONDS))


def test_orders_are_placed_billed_and_followed_over_http(shop: httpx.Client) -> None:
    placed = [shop.post("/orders", params={"item": "tea", "count": n}).json() for n in range(1, 21)]
    totals = [shop.get(f"/orders/{each['order']}?wait=60").json() for each in placed]
    assert totals == [{"total": 3 * n} for n in range(1, 21)]
    stream = f"/orders/{placed[-1]['order']}/events"
    for wrong in ("", "None", placed[0]["key"]):
        assert shop.get(stream, params={"key": wrong}).status_code == 404
    followed = shop.get(stream, params={"key": placed[-1]["key"]}).text
    assert "event: end" in followed
    assert '"message":"tea 20"' in followed
    assert shop.get("/orders/999999").status_code == 404
    assert 'EventSource("/orders/1/events" + location.search)' in shop.get("/orders/1/page").text
    wait_until(lambda: len(workers(shop)) == 2, "both workers run")
    assert shop.get("/queue/api/jobs").status_code == 401
    assert "shop.bill" in shop.get("/dashboard/jobs", headers=BOB).text
    order = placed[0]["order"]
    # On a connection of its own: a request is refused before its body is read, and gunicorn closes
    # the connection of a request whose body had not arrived by then.
    refused = httpx.post(shop.base_url.join(f"/queue/api/jobs/{order}/retry"), json={}, headers=BOB)
    assert refused.status_code == 403
    assert shop.post(f"/queue/api/jobs/{order}/retry", json={}, headers=ANN).status_code == 200
    timeline = shop.get(f"/queue/api/jobs/{order}", headers=BOB).json()["timeline"]
    assert "ann" in {entry["by"] for entry in timeline}


def workers(shop: httpx.Client) -> list[object]:
    found: list[object] = shop.get("/queue/api/workers", headers=BOB).json()["workers"]
    return found
