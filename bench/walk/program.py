"""One process that traces jobs:  python -m bench.walk.program PACKAGE WALK URL WALKS FOLDER

    plain     enqueue, until the job's row is in history
    expired   a lease whose worker was killed, from then until the row is in history
    cancel    cancel of a running job, until the row is in history
    tenant    the same as plain, for a job of a tenant, with a host that serves all tenants
    http      POST /api/jobs, from the request to its response
    die       no walk: a worker for `expired`, which kills itself in its handler

The first walk opens connections and starts threads; it is not traced. The other WALKS are, and the
functions that all of them pass are printed. Work that happens to fall into one of them, such as a
heartbeat, is not on the path of the job.

The interpreter and PACKAGE are those of the traced commit, so this module imports nothing else of
it than its public interface, which is the same for all commits.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from bench.child import print_result

TOKEN = "a-token-for-one-walk"
TENANT = "walker"
_POLL_SECONDS = 0.002
_MAX_SECONDS = 60.0
#: Time for the work that the walk before left: a claim that finds nothing, for example.
_SETTLE_SECONDS = 0.3
_NO_FUNCTIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<module>")


class Tracer:
    """Collects the functions of one package, of all threads that start after it, in order."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._seen: dict[CodeType, None] | None = None
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def _profile(self, frame: FrameType, event: str, _: object) -> None:
        seen = self._seen
        if seen is not None and event == "call" and self._folder in frame.f_code.co_filename:
            seen[frame.f_code] = None

    async def walk(self, way: Callable[[], Awaitable[None]]) -> list[tuple[str, str]]:
        self._seen = {}
        try:
            await way()
        finally:
            seen, self._seen = self._seen, None
        return [
            (code.co_filename.split(self._folder, 1)[1], code.co_qualname)
            for code in seen
            if not code.co_name.startswith(_NO_FUNCTIONS)
        ]


class Walker:
    def __init__(self, package: str, url: str, folder: Path) -> None:
        self.package = package
        self.url = url
        self.folder = folder
        self.tracer = Tracer(f"{os.sep}src{os.sep}{package}{os.sep}")
        self.app = getattr(importlib.import_module(package), package.capitalize())(url)
        self.app.migrate()
        self.has_started = asyncio.Event()
        self._define()

    def _define(self) -> None:
        @self.app.task(name="walk.plain")  # type: ignore[untyped-decorator]
        async def plain() -> None:
            pass

        @self.app.task(name="walk.lasting")  # type: ignore[untyped-decorator]
        async def lasting() -> None:
            self.has_started.set()
            await asyncio.Event().wait()

        @self.app.task(name="walk.deadly")  # type: ignore[untyped-decorator]
        async def deadly() -> None:
            if os.environ.get("WALK_DIES"):
                os.kill(os.getpid(), signal.SIGKILL)

        self.plain, self.lasting, self.deadly = plain, lasting, deadly
        self.plain_of_tenant = plain.using(tenant=TENANT)

    async def trace(self, name: str, walks: int) -> dict[str, Any]:
        traced = []
        if name == "tenant":
            self.app.tenants.create(TENANT)
        self._serve("all" if name == "tenant" else None)
        for _ in range(walks + 1):
            prepare, way = getattr(self, f"_{name}")()
            await asyncio.wait_for(prepare(), _MAX_SECONDS)
            await asyncio.sleep(_SETTLE_SECONDS)
            traced.append(await asyncio.wait_for(self.tracer.walk(way), _MAX_SECONDS))
        in_all = set.intersection(*map(set, traced[1:]))
        return {"functions": [step for step in traced[1] if step in in_all]}

    def _serve(self, tenants: str | None = None) -> None:
        self._serving = asyncio.ensure_future(self.app.arun_worker(tenants=tenants))

    async def die(self) -> dict[str, Any]:
        """Run the next job of `deadly`, which ends this process."""
        await self.app.arun_worker()
        return {}

    # -- the walks ---------------------------------------------------------------------------

    def _plain(self) -> Any:
        async def way() -> None:
            await self._until_in_history((await asyncio.to_thread(self.plain.enqueue)).id)

        return _nothing, way

    def _tenant(self) -> Any:
        async def way() -> None:
            handle = await asyncio.to_thread(self.plain_of_tenant.enqueue)
            await self._until_in_history(handle.id, TENANT)

        return _nothing, way

    def _cancel(self) -> Any:
        handle: Any = None

        async def prepare() -> None:
            nonlocal handle
            self.has_started.clear()
            handle = await self.lasting.aenqueue()
            await self.has_started.wait()

        async def way() -> None:
            await asyncio.to_thread(handle.cancel)
            await self._until_in_history(handle.id)

        return prepare, way

    def _expired(self) -> Any:
        job_id = 0

        async def prepare() -> None:
            """No other worker is there until the one with the lease is dead."""
            nonlocal job_id
            self._serving.cancel()
            await asyncio.wait({self._serving})
            job_id = (await self.deadly.aenqueue()).id
            words = ("-m", "bench.walk.program", self.package, "die", self.url, "0", "-")
            environment = {**os.environ, "WALK_DIES": "1"}
            dying = await asyncio.create_subprocess_exec(sys.executable, *words, env=environment)
            await dying.wait()
            self._serve()
            await self._until_in_history((await self.plain.aenqueue()).id)

        async def way() -> None:
            await self._until_in_history(job_id)

        return prepare, way

    def _http(self) -> Any:
        service = importlib.import_module(f"{self.package}.http").api(self.app)

        async def way() -> None:
            status = await _post(service, "/api/jobs", b'{"task": "walk.plain"}')
            if status != 201:
                raise RuntimeError(f"POST /api/jobs answered {status}")

        return _nothing, way

    # -- the row -----------------------------------------------------------------------------

    async def _until_in_history(self, job_id: int, tenant: str | None = None) -> None:
        while not self._is_in_history(job_id, tenant):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(_POLL_SECONDS)

    def _is_in_history(self, job_id: int, tenant: str | None) -> bool:
        """Read past the package: its functions would be traced."""
        if self.url.startswith("postgres"):
            import psycopg  # SQLite needs no driver

            schema = f"{self.package}_t_{tenant}" if tenant else self.package
            with psycopg.connect(self.url) as connection:
                query = f"select 1 from {schema}.history where id = {job_id}"
                return connection.execute(query).fetchone() is not None
        pattern = f"*{tenant}*.db" if tenant else Path(self.url).name
        (file,) = self.folder.rglob(pattern)
        with closing(sqlite3.connect(file)) as file_connection:
            query = f"select 1 from history where id = {job_id}"
            return file_connection.execute(query).fetchone() is not None


async def _nothing() -> None:
    pass


async def _post(service: Any, path: str, body: bytes) -> int:
    """A request to the ASGI application itself, without a server."""
    statuses: list[int] = []
    headers = [
        (b"host", b"localhost"),
        (b"content-type", b"application/json"),
        (b"authorization", f"Bearer {TOKEN}".encode()),
    ]
    scope = {
        "type": "http",
        "http_version": "1.1",
        "asgi": {"version": "3.0"},
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await service(scope, receive, send)
    return statuses[0]


async def _run(package: str, walk: str, url: str, walks: int, folder: Path) -> dict[str, Any]:
    walker = Walker(package, url, folder)
    return await (walker.die() if walk == "die" else walker.trace(walk, walks))


def main() -> None:
    package, walk, url, walks, folder = sys.argv[1:6]
    print_result(_run(package, walk, url, int(walks), Path(folder)))


if __name__ == "__main__":
    main()
