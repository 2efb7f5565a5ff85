"""The lifespan of an app: what its handlers share, opened once in each worker process.

The opened value is a context variable: a worker is built in the context of the code that runs it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
)
from contextvars import ContextVar
from typing import Any, TypeAlias

#: Makes a context manager that yields the value of ``ctx.deps``.
Lifespan: TypeAlias = Callable[[], AbstractAsyncContextManager[Any] | AbstractContextManager[Any]]


class NotOpened:
    """In place of the value, in an app without a lifespan."""


NOT_OPENED = NotOpened()
opened_deps: ContextVar[Any] = ContextVar("opened_deps", default=NOT_OPENED)


async def enter_lifespan(stack: AsyncExitStack, lifespan: Lifespan) -> Any:
    context = lifespan()
    if isinstance(context, AbstractAsyncContextManager):
        return await stack.enter_async_context(context)
    return stack.enter_context(context)


@asynccontextmanager
async def opened(lifespan: Lifespan | None) -> AsyncIterator[None]:
    """Workers that are built in this block have the value of the lifespan as ``ctx.deps``."""
    async with AsyncExitStack() as stack:
        deps = NOT_OPENED if lifespan is None else await enter_lifespan(stack, lifespan)
        token = opened_deps.set(deps)
        try:
            yield
        finally:
            opened_deps.reset(token)
