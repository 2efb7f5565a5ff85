"""Methods of a handler's objects may raise anything: that ends their own attempt, and no worker."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from freehold import Fail, State
from tests.worker.local_worker import ONCE, LocalWorker, kinds


class Odd(BaseException):
    """Neither an exit nor a cancellation."""


def _unprintable(error: type[BaseException]) -> Any:
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise error

        __repr__ = __str__

    raise Unprintable


def _unprintable_reason(error: type[BaseException]) -> Any:
    class Reason(str):
        def __str__(self) -> str:
            raise error

        __bool__ = __len__ = __str__  # type: ignore[assignment]

    failure = Fail("a reason")
    failure.reason = Reason("another")
    raise failure


def _unknown_class(error: type[BaseException]) -> Any:
    class Unknown:
        @property  # type: ignore[misc]
        def __class__(self) -> Any:
            raise error

    return Unknown()


def _stops_iteration(error: type[BaseException]) -> Any:
    class Value:
        def __repr__(self) -> str:
            raise error

    raise StopIteration(Value())


def _values(error: type[BaseException]) -> Any:
    class Values(dict[str, Any]):
        def values(self) -> Any:
            raise error

    return Values(a=None)


def _field(error: type[BaseException]) -> Any:
    class Field:
        @property
        def __dataclass_fields__(self) -> Any:
            raise error

    return Field()


@pytest.mark.requirement("S2.5", "P7")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, Odd])
@kinds
@pytest.mark.either_store
def test_objects_that_raise_anything_end_their_own_attempts_only(
    local_worker: LocalWorker, kind: str, error: type[BaseException]
) -> None:
    bodies: list[Callable[[type[BaseException]], Any]] = [
        _unprintable,
        _unprintable_reason,
        _unknown_class,
        _stops_iteration,
        _values,
        _field,
    ]
    broken = {body.__name__: _add(local_worker, kind, body, error) for body in bodies}
    healthy = [_add(local_worker, kind, body, error) for body in (_well,)]
    local_worker.run(concurrency=3)
    ended = {name: local_worker.job(job_id) for name, job_id in broken.items()}
    assert {name: job.state for name, job in ended.items()} == dict.fromkeys(ended, State.FAILED)
    assert all(job.reason and job.attempt == 1 for job in ended.values())
    assert [local_worker.job(job_id).state for job_id in healthy] == [State.SUCCEEDED]


def _well(_error: type[BaseException]) -> Any:
    return "well"


def _add(
    local_worker: LocalWorker,
    kind: str,
    body: Callable[[type[BaseException]], Any],
    error: type[BaseException],
) -> int:
    async def coroutine() -> Any:
        return body(error)

    def function() -> Any:
        return body(error)

    handler: Callable[..., Any] = coroutine if kind == "coroutine" else function
    handler.__name__ = body.__name__
    return local_worker.add(handler, retry=ONCE)


_SIGNALED = """
import os, signal
from freehold import Freehold, Retry

app = Freehold("broken.db")

class Result(dict):
    def values(self):
        os.kill(os.getpid(), signal.{signal})
        raise {error}

@app.task(retry=Retry(max_attempts=1))
async def on_the_loop():
    return Result(a=None)

@app.task(retry=Retry(max_attempts=1))
def in_a_thread():
    return Result(a=None)
"""


@pytest.mark.requirement("S4.11")
@pytest.mark.parametrize(
    ("task", "signal", "error"),
    [
        ("on_the_loop", "SIGINT", "KeyboardInterrupt"),
        ("on_the_loop", "SIGTERM", "SystemExit(7)"),
        ("in_a_thread", "SIGINT", "KeyboardInterrupt"),
    ],
)
def test_a_signal_during_the_judgement_of_a_result_drains_the_worker(
    tmp_path: Path, task: str, signal: str, error: str
) -> None:
    (tmp_path / "broken.py").write_text(_SIGNALED.format(signal=signal, error=error))
    env = {name: value for name, value in os.environ.items() if not name.startswith("FREEHOLD")}
    command = [sys.executable, "-m", "freehold"]
    enqueue = [*command, "enqueue", f"broken.{task}", "--app", "broken:app"]
    subprocess.run(enqueue, cwd=tmp_path, env=env, check=True, capture_output=True)
    work = [*command, "worker", "--app", "broken:app"]
    done = subprocess.run(work, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    assert " drains" in done.stderr
    assert "job 1 of broken." in done.stderr
    assert "failed after attempt 1" in done.stderr
