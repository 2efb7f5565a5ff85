"""Pausing and resuming, as the forms of queues and lanes do it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from freehold.dashboard.page_request import PageRequest, Redirect


async def pause(
    request: PageRequest, verb: Callable[..., Awaitable[None]], kind: str, name: str
) -> Redirect:
    """Back to the page of the queue or lane."""
    until = await request.body.until(request)
    await verb(name, request.by, request.body.reason, until)
    return Redirect(request.url(f"{kind}s", name), f"{kind.capitalize()} {name} is paused.")


async def resume(
    request: PageRequest, verb: Callable[..., Awaitable[bool]], kind: str, name: str
) -> Redirect:
    was_paused = await verb(name, request.by, request.body.reason)
    state = "is resumed" if was_paused else "was not paused"
    return Redirect(request.url(f"{kind}s", name), f"{kind.capitalize()} {name} {state}.")
