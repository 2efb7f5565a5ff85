"""Tasks that run in child processes: they must be found by their module."""

from __future__ import annotations

from freehold import Freehold, Retry
from freehold.worker.execution.context import Context

app = Freehold("sqlite://:memory:")


@app.task(isolation="process")
def logs(ctx: Context) -> None:
    ctx.progress(1, 4)
    ctx.log("one")
    ctx.progress(3, 4, "nearly")
    ctx.log("two")


@app.task(isolation="process")
def logs_too_much(ctx: Context) -> None:
    for number in range(250):
        ctx.log(f"line {number}")


@app.task(isolation="process")
def returns_meta(ctx: Context) -> dict[str, str | int | float | bool | None]:
    return ctx.meta


@app.task(isolation="process", retry=Retry(max_attempts=1))
def wants_a_transaction(ctx: Context) -> None:
    with ctx.transaction():
        raise AssertionError("there is none")


@app.task(isolation="process", retry=Retry(max_attempts=1))
def wants_a_step(ctx: Context) -> None:
    ctx.step("charge", int)


@app.task(isolation="process")
def pauses(ctx: Context) -> None:
    ctx.pause_queue(3600, "the API returned 429")
