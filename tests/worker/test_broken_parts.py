"""Parts that break at an awkward moment are reported, and never waited for without end."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest

from freehold import Freehold, NewJob
from freehold.store.open import open_database
from freehold.telemetry import Telemetry
from freehold.worker.config import WorkerSettings
from freehold.worker.heartbeat import HeartbeatSchedule
from freehold.worker.held_leases import HeldLeases
from freehold.worker.lease_renewer import LeaseRenewer
from freehold.worker.renewal_thread import RenewalThread

SOON_SECONDS = 120


def renewer() -> LeaseRenewer:
    nothing: Any = None
    return LeaseRenewer(
        nothing,
        "w1",
        HeldLeases(),
        HeartbeatSchedule(lambda: nothing),
        Telemetry(),
        WorkerSettings(),
    )


def test_a_renewal_thread_that_cannot_create_its_loop_reports_the_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_loop(coroutine: Any) -> None:
        coroutine.close()
        raise OSError("too many open files")

    async def scenario() -> None:
        nothing: Any = None
        thread = RenewalThread(renewer(), nothing, nothing, lambda _payload: None)
        with monkeypatch.context() as patched:
            patched.setattr("freehold.worker.renewal_thread.asyncio.run", no_loop)
            thread.start()
        with pytest.raises(OSError, match="too many open files"):
            await asyncio.wait_for(thread.crashed(), SOON_SECONDS)
        await thread.stop()

    asyncio.run(scenario())


def test_a_renewer_with_a_closed_loop_can_still_be_woken() -> None:
    """A worker drains when its renewer has crashed, and wakes it first."""
    broken = renewer()
    loop = asyncio.new_event_loop()
    loop.close()
    broken._loop = loop
    broken.wake(has_requests=True)


def test_a_writer_thread_that_could_not_start_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Freehold(str(tmp_path / "jobs.db"))
    app.migrate()
    app.close()
    start = threading.Thread.start

    def fails_once(thread: threading.Thread) -> None:
        monkeypatch.setattr(threading.Thread, "start", start)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fails_once)
    with pytest.raises(RuntimeError, match="new thread"):
        app._submit(NewJob(task="t"))
    assert app._submit(NewJob(task="t")).id
    app.close()


@pytest.mark.parametrize("owner_kind", ["app", "shard"])
def test_a_lock_that_another_thread_held_is_open_in_a_forked_child(
    tmp_path: Path, owner_kind: str
) -> None:
    warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of just this
    app = Freehold(str(tmp_path / "jobs.db"))
    app.tenants.create("acme")
    owner: Any = app if owner_kind == "app" else app.tenants.shards["home"]
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        with owner._lock:
            held.set()
            free.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SOON_SECONDS)
        with owner._lock:
            os._exit(0)
    status = os.waitpid(child, 0)[1]
    free.set()
    thread.join()
    app.close()
    assert status == 0


def test_closing_does_not_wait_for_a_transaction_that_never_ends(tmp_path: Path) -> None:
    database = open_database(str(tmp_path / "jobs.db"))
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        engine: Any = database
        with engine._engine.transaction():
            held.set()
            free.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    closing = threading.Thread(target=database.close)
    closing.start()
    closing.join(SOON_SECONDS)
    assert not closing.is_alive()
    free.set()
    thread.join()
    database.close()
