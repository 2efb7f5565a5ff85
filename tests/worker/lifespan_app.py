"""An app with a lifespan and dependencies, whose tasks run in each of the three ways."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from freehold import Context, Depends, Freehold, Retry

#: A file to which every process appends what it opens and closes.
RECORD_VARIABLE = "LIFESPAN_RECORD"
ONCE = Retry(max_attempts=1)


@dataclass
class Deps:
    name: str
    #: The loop to which connections of asyncio belong.
    loop: asyncio.AbstractEventLoop | None


def note(what: str) -> None:
    with Path(os.environ[RECORD_VARIABLE]).open("a") as record:
        record.write(f"{what} {os.getpid()}\n")


@asynccontextmanager
async def lifespan() -> AsyncIterator[Deps]:
    note("opened")
    yield Deps("shared", asyncio.get_running_loop())
    note("closed")


app = Freehold("sqlite://:memory:", lifespan=lifespan)


def greeting(ctx: Context[Deps]) -> str:
    return f"hello {ctx.deps.name}"


@app.task(retry=ONCE)
async def coroutine(
    ctx: Context[Deps], text: Annotated[str, Depends(greeting)]
) -> tuple[str, bool]:
    return text, asyncio.get_running_loop() is ctx.deps.loop


@app.task(retry=ONCE)
def function(ctx: Context[Deps], text: Annotated[str, Depends(greeting)]) -> tuple[str, bool]:
    return text, True


@app.task(retry=ONCE, isolation="process")
def child(ctx: Context[Deps], text: Annotated[str, Depends(greeting)]) -> tuple[str, bool]:
    return text, True


@app.task(retry=ONCE, isolation="process")
async def child_coroutine(
    ctx: Context[Deps], text: Annotated[str, Depends(greeting)]
) -> tuple[str, bool]:
    return text, asyncio.get_running_loop() is ctx.deps.loop


@app.task(retry=ONCE, isolation="process")
async def never_ends(ctx: Context[Deps]) -> None:
    note("began")
    try:
        await asyncio.Event().wait()
    finally:
        note("ended")


TASKS: dict[str, Any] = {
    "coroutine": coroutine,
    "function": function,
    "child": child,
    "child coroutine": child_coroutine,
}
