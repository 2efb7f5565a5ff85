"""The database of a run: its URLs, and the faults of the database itself."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Protocol

import psycopg

from freehold.lab.devpostgres import DevPostgres
from freehold.model.history import Event
from freehold.store.rows import event_of
from tests.chaos.pooler import Pooler
from tests.chaos.proxy import Link, Proxy, Trap
from tests.chaos.standby import start_standby, take_over

_EVENTS = """
select id, job_id, at, kind, state, attempt, by, reason, cast(error as text), token, leased_at,
    started_at, due_at from {s}event order by id
"""
_SETTINGS: dict[str, str | int] = {
    # A crash of the server loses no commit without fsync, because the kernel keeps its writes. A
    # crash of the machine is not tested.
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": 300,
}
#: What a read raises while the database is stopped or cannot be reached.
UNAVAILABLE = (psycopg.Error, sqlite3.Error)
#: A file system of its own, because a full disk would also stop the records.
_TMPFS_BYTES = 600 * 2**20


class Target(Protocol):
    """The operations of both databases."""

    #: Without faults, for the judge.
    url: str

    async def start(self) -> None: ...

    def url_for(self, name: str) -> str:
        """The URL with faults, for the process of this name."""
        ...

    def events(self) -> list[Event]: ...

    async def hold_snapshot(self, seconds: float) -> None: ...

    async def close(self) -> None: ...


class PostgresTarget:
    """A server with a proxy in front of it, and optionally a pooler between the two."""

    def __init__(self, on_trap: Callable[[Link, Trap], None], *, pooled: bool) -> None:
        self.server = DevPostgres(settings=_SETTINGS)
        self._on_trap = on_trap
        self._pooled = pooled
        self._pooler: Pooler | None = None

    async def start(self) -> None:
        await asyncio.to_thread(self.server.start)
        path = _socket_of(self.server)
        # A proxy without faults for the judge, which can be redirected to a promoted standby.
        self._judge_proxy = Proxy(path, self._on_trap)
        self.url = _through(await self._judge_proxy.start(), "judge")
        if self._pooled:
            self._pooler = Pooler(self.server.url)
            await asyncio.to_thread(self._pooler.start)
            path = self._pooler.socket
        self.proxy = Proxy(path, self._on_trap)
        self._port = await self.proxy.start()

    def url_for(self, name: str) -> str:
        return _through(self._port, name)

    def events(self) -> list[Event]:
        with psycopg.connect(self.url) as connection:
            return read_events(connection)

    async def stop_hard(self, down_seconds: float) -> None:
        await asyncio.to_thread(self.server.stop, "immediate")
        await asyncio.sleep(down_seconds)
        await asyncio.to_thread(self.server.start)

    async def prepare_standby(self) -> None:
        self._standby = await asyncio.to_thread(start_standby, self.server, _SETTINGS)

    async def promote_standby(self) -> None:
        old, self.server = self.server, self._standby
        await asyncio.to_thread(take_over, self.server, old)
        for proxy in (self._judge_proxy, self.proxy):
            proxy.redirect_to(_socket_of(self.server))

    async def terminate_all(self) -> None:
        """Terminates the connections of all clients, as an administrator would."""
        with suppress(psycopg.Error):
            connection = await psycopg.AsyncConnection.connect(self.url, autocommit=True)
            async with connection:
                await connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where pid <> pg_backend_pid() and backend_type = 'client backend'"
                )

    async def hold_snapshot(self, seconds: float) -> None:
        with suppress(psycopg.Error):
            connection = await psycopg.AsyncConnection.connect(self.url)
            async with connection:
                await connection.execute("set transaction isolation level repeatable read")
                await connection.execute("select count(*) from freehold.queue")
                await asyncio.sleep(seconds)

    async def close(self) -> None:
        await self.proxy.stop()
        await self._judge_proxy.stop()
        if self._pooler is not None:
            self._pooler.close()
        await asyncio.to_thread(self.server.close)


def read_events(connection: psycopg.Connection[Any]) -> list[Event]:
    rows = connection.execute(_EVENTS.replace("{s}", "freehold.").encode())
    return [event_of(row) for row in rows]


def _socket_of(server: DevPostgres) -> str:
    parts = psycopg.conninfo.conninfo_to_dict(server.url)
    return f"{parts['host']}/.s.PGSQL.{parts['port']}"


def _through(port: int, name: str) -> str:
    return (
        f"postgresql://postgres@127.0.0.1:{port}/postgres?application_name={name}"
        "&sslmode=disable&gssencmode=disable"
    )


class SqliteTarget:
    """A file, on a small file system where mounting one is possible."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "disk"
        self.can_fill = False

    async def start(self) -> None:
        await asyncio.to_thread(self._mount)
        self.url = str(self._folder / "chaos.db")

    def _mount(self) -> None:
        self._folder.mkdir(parents=True)
        mount = shutil.which("mount")
        if mount is not None and os.geteuid() == 0:
            command = [
                mount,
                "-t",
                "tmpfs",
                "-o",
                f"size={_TMPFS_BYTES}",
                "tmpfs",
                str(self._folder),
            ]
            self.can_fill = _run(command)

    def url_for(self, name: str) -> str:
        return self.url

    def events(self) -> list[Event]:
        with closing(sqlite3.connect(self.url)) as connection:
            rows: Sequence[Any] = connection.execute(_EVENTS.replace("{s}", "")).fetchall()
            return [event_of(row) for row in rows]

    async def hold_snapshot(self, seconds: float) -> None:
        """A reader prevents the checkpoint of the write-ahead log."""
        with closing(sqlite3.connect(self.url)) as connection:
            connection.execute("begin")
            connection.execute("select count(*) from queue").fetchall()
            await asyncio.sleep(seconds)

    async def hold_writers(self, seconds: float) -> bool:
        """Another writer holds the write lock for long. Returns whether it got the lock."""
        with closing(
            sqlite3.connect(self.url, timeout=5.0, isolation_level=None, check_same_thread=False)
        ) as connection:
            try:
                await asyncio.to_thread(connection.execute, "begin immediate")
            except sqlite3.OperationalError:
                return False
            await asyncio.sleep(seconds)
            connection.execute("rollback")
        return True

    async def fill_disk(self, seconds: float) -> None:
        ballast = self._folder / "ballast"
        await asyncio.to_thread(_fill, ballast)
        await asyncio.sleep(seconds)
        ballast.unlink()

    async def close(self) -> None:
        if self.can_fill:
            await asyncio.to_thread(_run, ["umount", "--lazy", str(self._folder)])


def _run(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True).returncode == 0


def _fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        for block in (bytes(1 << 20), bytes(1 << 12)):
            with suppress(OSError):
                while file.write(block):
                    pass
