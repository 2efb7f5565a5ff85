"""An app with extensions, whose tasks run in each of the three ways."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any

from freehold import Context, Extension, Freehold, Retry

ONCE = Retry(max_attempts=1)
request_id: ContextVar[str] = ContextVar("request_id")
#: What was entered around the handler, in its own task, thread or process.
around: ContextVar[tuple[str, ...]] = ContextVar("around", default=())

app = Freehold("sqlite://:memory:")
app.carry(request_id)


class Outer(Extension):
    @contextmanager
    def attempt(self, ctx: Context) -> Iterator[None]:
        token = around.set((*around.get(), f"outer {ctx.attempt}"))
        try:
            yield
        except ZeroDivisionError as error:
            raise KeyError("replaced by the extension") from error
        finally:
            around.reset(token)


class Inner(Extension):
    @asynccontextmanager
    async def attempt(self, ctx: Context) -> AsyncIterator[None]:
        if ctx.meta.get("refused"):
            raise PermissionError("refused by the extension")
        yield


app.extend(Outer())
app.extend(Inner())


def _seen() -> list[str]:
    return [request_id.get("none"), *around.get()]


@app.task(retry=ONCE)
async def coroutine(divisor: int = 1) -> list[str]:
    assert 1 // divisor
    return _seen()


@app.task(retry=ONCE)
def function(divisor: int = 1) -> list[str]:
    assert 1 // divisor
    return _seen()


@app.task(retry=ONCE, isolation="process")
def child(divisor: int = 1) -> list[str]:
    assert 1 // divisor
    return _seen()


TASKS: dict[str, Any] = {"coroutine": coroutine, "function": function, "child": child}
