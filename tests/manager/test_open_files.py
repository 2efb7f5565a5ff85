"""A service without a file left to open goes on, and so do its workers."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import resource
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from freehold.manager.fleet import Fleet
from freehold.manager.manager import Manager
from freehold.manager.process_slots import SlotOwner, manager_lock
from freehold.manager.reload import watch_sources
from freehold.model.scaling import ScaleRule
from freehold.open_files import file_limit, raise_limit
from freehold.rare_warning import RareWarning
from freehold.worker.manager_link import ManagerLink
from tests.flood import Flood
from tests.manager.load_app import naps
from tests.manager.service import Service
from tests.processes import no_more_files
from tests.worker.fleet import eventually

#: For the connections of these tests.
FILES = 4096


def _port(service: Service) -> int:
    found = eventually(lambda: re.findall(r"served on http://127.0.0.1:(\d+)", service.log_text()))
    return int(found[0])


def _is_alive(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


@pytest.fixture
def many_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES, hard), hard))


@pytest.mark.usefixtures("many_files")
@pytest.mark.parametrize(
    ("open_files", "idle", "trickling", "uvloop"),
    [(128, 200, 200, True), (128, 200, 200, False), (1024, 1100, 0, True)],
)
def test_connections_that_use_up_all_files_stop_neither_the_api_nor_the_workers(
    sqlite_service: Service, open_files: int, idle: int, trickling: int, uvloop: bool
) -> None:
    service = sqlite_service
    up = service.up("--default-count", "1", open_files=open_files, uvloop=uvloop)
    port = _port(service)
    (first,) = service.until_registered(1)
    with Flood(port, idle=idle, trickling=trickling):
        os.kill(first.pid, signal.SIGKILL)  # to replace it, the manager needs its files
        during = [naps.enqueue(0.0).id for _ in range(3)]
        eventually(lambda: not up.is_alive or service.all_succeeded(during))
        assert up.is_alive, service.log_text()
        eventually(lambda: _is_alive(port))
    assert len(service.logged("open files")) <= 3, "more than one warning a minute of each kind"
    up.send(signal.SIGTERM)
    assert up.ended() == 0


async def _until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def _start(_: Sequence[str], slot_file: int) -> subprocess.Popen[bytes]:
    """A process that keeps its slot until it is signaled."""
    command = [sys.executable, "-c", "import signal; signal.pause()"]
    return subprocess.Popen(command, pass_fds=(slot_file,))


def test_a_manager_without_files_tries_again_and_stops_no_worker(
    sqlite_service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    processes: list[subprocess.Popen[bytes]] = []

    def start(arguments: Sequence[str], slot_file: int) -> subprocess.Popen[bytes]:
        processes.append(_start(arguments, slot_file))
        return processes[-1]

    async def life() -> int:
        rule = ScaleRule(
            default_count=1, max_count=1, concurrency=1, cooldown_seconds=1.0, late_seconds=0.0
        )
        manager = Manager(
            sqlite_service.app._client.awaited,
            rule,
            start,
            sqlite_service.folder,
            queues=["default"],
            scale_seconds=0.01,
            grace_seconds=1.0,
        )
        running = asyncio.create_task(manager.run())
        await _until(lambda: processes)
        with no_more_files():
            await _until(lambda: "cannot use its files" in caplog.text)
            processes[0].kill()
            processes[0].wait()
            for _ in range(5):
                await asyncio.sleep(0.01)
            assert not running.done()
        await _until(lambda: len(processes) == 2)
        assert caplog.text.count("cannot use its files") == 1
        manager.stop()
        try:
            return await running
        finally:
            await sqlite_service.app.aclose()

    with caplog.at_level(logging.WARNING):
        assert asyncio.run(life()) == 0


def test_a_drain_that_could_not_be_sent_is_sent_again(tmp_path: Path) -> None:
    """To signal a worker of a former manager, its slot is read."""
    former, fleet = (Fleet(tmp_path, 1, _start, 1.0) for _ in range(2))
    former.start(1, now=0.0)
    (worker,) = former
    assert worker.pid is not None
    worker.slot.path.write_bytes(b'{"pid": %d, "owner": "w1"}' % worker.pid)
    fleet.adopt(now=0.0)
    with no_more_files(), pytest.raises(OSError, match="Too many open files"):
        fleet.drain(now=1.0)
    assert next(iter(fleet)).owner == "w1"
    fleet.drain(now=2.0)

    def has_ended() -> bool:
        former.reap(3.0)
        return not len(former)

    eventually(has_ended)


def test_a_worker_that_cannot_check_its_manager_does_not_drain(tmp_path: Path) -> None:
    file = os.open(tmp_path / "slot-1", os.O_RDWR | os.O_CREAT)
    try:
        with manager_lock(tmp_path, "m1"):
            link = ManagerLink(tmp_path, file, SlotOwner(os.getpid(), "w1").owner)
            with no_more_files():
                assert link._current() is not None
            assert link._current() == "m1"
    finally:
        os.close(file)


def test_files_that_cannot_be_listed_are_not_taken_for_removed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freehold.manager.reload.CHECK_SECONDS", 0.01)
    changes: list[None] = []

    def change() -> bool:
        (tmp_path / "tasks.py").touch()
        return bool(changes)

    async def life() -> None:
        watching = asyncio.create_task(watch_sources(tmp_path, lambda: changes.append(None)))
        await _until(change)
        changes.clear()
        with no_more_files():
            await _until(lambda: changes or "cannot look for" in caplog.text)
        watching.cancel()

    with caplog.at_level(logging.WARNING):
        asyncio.run(life())
    assert changes == []


def test_a_warning_that_could_flood_the_log_is_written_once_a_minute(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("freehold.rare_warning.monotonic", lambda: now)
    warning = RareWarning("full: %d")
    for now in (0.0, 0.1, 59.9, 60.0, 61.0):
        warning.log(now)
    assert [record.getMessage() for record in caplog.records] == ["full: 0", "full: 60"]


def test_a_warning_with_keys_is_written_once_for_each_and_not_for_any_number(
    caplog: pytest.LogCaptureFixture,
) -> None:
    warning = RareWarning("unknown: %d", seconds=float("inf"))
    for number in (*range(2000), 5, 1999):
        warning.log(number, key=str(number), task="t")
    assert len(caplog.records) == 1000
    assert vars(caplog.records[0])["freehold"] == {"task": "t"}


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    hard = before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        raise_limit()
        assert file_limit() == (65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
