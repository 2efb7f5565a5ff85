"""LISTEN: hints that arrive within a millisecond, where the connection allows it.

Behind a pooler in transaction mode nothing arrives; then `heard` has said so, and polling
stays as frequent as it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import AsyncConnection

from freehold.telemetry import log

#: An own hint that does not come back within this time means: nobody hears us.
PROOF_SECONDS = 5.0
#: So long nobody has to have said anything before it is tried whether we still hear.
SILENCE_SECONDS = 20.0
_PROBE = "?"
RETRY_SECONDS = 1.0


async def listen(conninfo: str, channel: str, heard: Callable[[str | None], None]) -> None:
    """Until cancelled. A connection that proves deaf or dead is replaced."""
    while True:
        try:
            connection = await AsyncConnection.connect(conninfo, autocommit=True)
            async with connection:
                await _follow(connection, channel, heard)
        except (psycopg.Error, OSError) as error:
            log.debug("listening ended: %s", error)
        heard(None)
        await asyncio.sleep(RETRY_SECONDS)


async def _follow(
    connection: AsyncConnection[Any], channel: str, heard: Callable[[str | None], None]
) -> None:
    """Pass on what arrives. Whatever arrives proves that we hear; after a long silence say
    something, and expect to hear it. In a large fleet one speaks up, and all others hear it."""
    await connection.execute(f"listen {channel}".encode())
    heard("")  # whatever was missed until now
    spread = 0.75 + connection.info.backend_pid % 50 / 100  # not all at once
    silence = 0.0
    while True:
        if silence <= 0.0:
            await connection.execute("select pg_notify(%s, %s)", (channel, _PROBE))
        proven = False
        async for notification in connection.notifies(timeout=silence or PROOF_SECONDS):
            proven = True
            if notification.payload != _PROBE:
                heard(notification.payload)
        if not proven and silence <= 0.0:
            return
        silence = SILENCE_SECONDS * spread if proven else 0.0
