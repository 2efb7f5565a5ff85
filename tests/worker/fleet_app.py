"""The tasks of these tests. Their handlers record their steps."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import resource
import signal
import stat
import struct
import time
from typing import Any, TypeAlias

from freehold import Cancel, Fail, Freehold, JobHandle, Pause, Retry, RetryLater, Snooze, Task
from freehold.worker.execution.context import Context
from tests.worker import lifeline
from tests.worker.handler_record import record, record_step

lifeline.hold()

app = Freehold()
#: As after a deploy: one more task, and one task with other parameters.
newer = Freehold()

#: The worker passes the context; callers, and their type checker, need none.
GIVEN: Any = None
SOON = Retry(max_attempts=3, base_seconds=0.2, jitter=0.0)
Sleeps: TypeAlias = Task[[float], Any, JobHandle] | Task[..., Any, JobHandle]


@app.task(retry=SOON)
async def quick(value: Any = None, *, ctx: Context = GIVEN) -> Any:
    record_step(ctx, "start")
    record_step(ctx, "end")
    return value


@app.task(retry=SOON)
def variable(name: str) -> str | None:
    return os.environ.get(name)


@app.task(retry=SOON, isolation="process")
def variable_in_a_child(name: str) -> str | None:
    return os.environ.get(name)


@app.task(retry=SOON)
async def sleeper(seconds: float, *, ctx: Context = GIVEN) -> int:
    """Returns its fencing token."""
    record_step(ctx, "start")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        record_step(ctx, f"stopped: {ctx.stop_reason}, held: {ctx.lease.held}")
        raise
    record_step(ctx, "end")
    return ctx.lease.token


@app.task(retry=SOON)
async def holds(value: str, *, ctx: Context = GIVEN) -> None:
    """Runs for a minute per character."""
    record_step(ctx, "start")
    await asyncio.sleep(60.0 * len(value))


@app.task(retry=SOON)
async def late(seconds: float, *, ctx: Context = GIVEN) -> str:
    """Returns a result after its stop, too late."""
    record_step(ctx, "start")
    try:
        await asyncio.sleep(seconds if ctx.attempt == 1 else 0.0)
    except asyncio.CancelledError:
        record_step(ctx, f"stopped: {ctx.stop_reason}, held: {ctx.lease.held}")
    record_step(ctx, "end")
    return f"attempt {ctx.attempt}"


@app.task(retry=SOON)
async def blocker(seconds: float, *, ctx: Context = GIVEN) -> None:
    record_step(ctx, "start")
    time.sleep(seconds)  # noqa: ASYNC251
    record_step(ctx, "end")


@app.task(retry=SOON)
def threaded(seconds: float, *, ctx: Context = GIVEN) -> None:
    """Sleeps through everything."""
    record_step(ctx, "start")
    time.sleep(seconds)
    record_step(ctx, "end")


@app.task(retry=SOON)
def polite(seconds: float, *, ctx: Context = GIVEN) -> None:
    """A thread that checks whether it should stop."""
    record_step(ctx, "start")
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if ctx.canceled:
            record_step(ctx, f"stopped: {ctx.stop_reason}, held: {ctx.lease.held}")
            raise InterruptedError("stopped")
        time.sleep(0.01)
    record_step(ctx, "end")


@app.task(retry=SOON, isolation="process")
def apart(seconds: float, *, ctx: Context = GIVEN) -> int:
    """In a child process. Returns its pid."""
    record_step(ctx, "start")
    time.sleep(seconds)
    record_step(ctx, "end")
    return os.getpid()


@app.task(retry=SOON, isolation="process")
def deaf_apart(seconds: float, *, ctx: Context = GIVEN) -> None:
    """A child that survives everything but a kill."""
    record_step(ctx, "start")
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            time.sleep(0.01)
        except BaseException as error:
            record_step(ctx, f"ignores {type(error).__name__}")
    record_step(ctx, "end")


@app.task(retry=SOON)
async def deaf(*, ctx: Context = GIVEN) -> None:
    """A coroutine that cannot be cancelled."""
    record_step(ctx, "start")
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            record_step(ctx, "ignores")


@app.task(retry=SOON)
async def beside(seconds: float, *, ctx: Context = GIVEN) -> None:
    """Waits for a thread of its own, which nothing can stop."""
    record_step(ctx, "start")
    await asyncio.to_thread(time.sleep, seconds)


@app.task(retry=SOON)
def transacts(seconds: float, *, ctx: Context = GIVEN) -> None:
    """Sleeps through everything, with a transaction open."""
    with ctx.transaction():
        record_step(ctx, "start")
        time.sleep(seconds)


@app.task(retry=SOON)
async def kills_its_worker(*, ctx: Context = GIVEN) -> None:
    record_step(ctx, "start")
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(retry=Retry(max_attempts=3), on_lease_expired="fail")
async def careful(*, ctx: Context = GIVEN) -> None:
    """Must not be tried again after its worker was lost."""
    record_step(ctx, "start")
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(retry=SOON, isolation="process")
def dies(how: str, *, ctx: Context = GIVEN) -> None:
    record_step(ctx, "start")
    match how:
        case "segfault":
            ctypes.string_at(0)
        case "exit":
            os._exit(3)
        case "memory":
            resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
            bytearray(2**32)
        case number:
            os.kill(os.getpid(), int(number))
            time.sleep(30)


@app.task(retry=Retry(max_attempts=1), isolation="process")
def writes_into_every_socket(text: str, framed: bool, *, ctx: Context = GIVEN) -> None:
    """The pipe to the worker is one of them."""
    record_step(ctx, "start")
    data = text.encode()
    data = struct.pack("!i", len(data)) + data if framed else data
    for number in range(3, 64):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                os.write(number, data)


@app.task(retry=Retry(max_attempts=1), isolation="process")
def forks(result: str, seconds: float) -> str:
    """Its grandchild survives, and returns while the child runs another job."""
    if os.fork() == 0:
        time.sleep(0.3)
        return "the grandchild"
    time.sleep(seconds)
    return result


@app.task(retry=Retry(max_attempts=1), isolation="process")
def leaves_a_grandchild(seconds: float) -> None:
    if os.fork() == 0:
        time.sleep(seconds)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)


@app.task(retry=SOON)
def chokes(seconds: float, *, ctx: Context = GIVEN) -> None:
    """For a while its worker can open no file, no pipe, no connection."""
    record_step(ctx, "start")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (4, hard))
    time.sleep(seconds)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    record_step(ctx, "end")


@app.task(retry=SOON)
async def ends(how: str, *, ctx: Context = GIVEN) -> str:
    """Ends as ``how`` the first time, and succeeds the second time."""
    record_step(ctx, "start")
    if record().starts(ctx.job.job_id)[1:]:
        return "second"
    match how:
        case "retry_later":
            raise RetryLater(0.1, reason="the other side is busy")
        case "snooze":
            raise Snooze(0.1, reason="too early")
        case "pause":
            raise Pause("needs an operator")
        case "cancel":
            raise Cancel("not needed any more")
        case "fail":
            raise Fail("the budget is spent")
        case "error":
            raise ValueError("a plain one")
        case _:
            return "first"


@app.task(retry=SOON)
async def always_fails(*, ctx: Context = GIVEN) -> None:
    record_step(ctx, "start")
    raise RuntimeError(f"attempt {ctx.attempt} went wrong")


@app.task(retry=Retry(max_attempts=5, base_seconds=0.05, give_up_on=(LookupError,)))
async def gives_up(*, ctx: Context = GIVEN) -> None:
    record_step(ctx, "start")
    raise KeyError("missing")


_RESULTS: dict[str, Any] = {
    "object": object(),
    "nul": "a\0b",
    "surrogate": "a\ud800b",
    "nan": [1.0, float("nan")],
    "huge": "x" * 2_000_000,
    "deep": json.loads("[" * 100 + "]" * 100),
}
_TEXTS = {"nul": "a\0b", "surrogate": "a\ud800b", "huge": "x" * 2_000_000, "json": '"}{\\u0000'}


@app.task(retry=Retry(max_attempts=1))
async def returns_invalid(what: str) -> Any:
    return _RESULTS[what]


@app.task(retry=Retry(max_attempts=1), isolation="process")
def returns_invalid_apart(what: str) -> Any:
    return _RESULTS[what]


@app.task(retry=Retry(max_attempts=1))
async def raises_invalid(what: str) -> None:
    raise RuntimeError(_TEXTS[what])


@app.task(retry=Retry(max_attempts=1), isolation="process")
def raises_invalid_apart(what: str) -> None:
    raise RuntimeError(_TEXTS[what])


@app.task(retry=Retry(max_attempts=1), name="weigh")
async def weigh_whole(grams: int) -> int:
    return grams


@newer.task(retry=Retry(max_attempts=1), name="weigh")
async def weigh_text(grams: str) -> str:
    return grams


@newer.task(retry=SOON, name="newcomer")
async def newcomer(value: int, *, ctx: Context = GIVEN) -> int:
    record_step(ctx, "start")
    return value


@app.task(queue="lanes", retry=SOON)
async def step(fails_once: bool, *, ctx: Context = GIVEN) -> None:
    """A job of a lane; some fail at first."""
    record_step(ctx, "start")
    await asyncio.sleep(0.002)
    if fails_once and ctx.attempt == 1:
        record_step(ctx, "end")
        raise ConnectionError("at first")
    record_step(ctx, "end")
