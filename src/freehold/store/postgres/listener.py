"""LISTEN: notifications arrive within a millisecond, if the connection allows it.

A pooler in transaction mode delivers none. The listener finds that out by a probe, a notification
to its own channel, and calls back with None, so that workers keep polling as often as before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import AsyncConnection

from freehold.store_health import GrowingWait
from freehold.telemetry import log

#: A probe that does not come back within this time was not delivered.
PROBE_TIMEOUT_SECONDS = 5.0
#: After this long without a notification a probe is sent.
_SILENCE_SECONDS = 20.0
_PROBE = "?"
RETRY_SECONDS = 1.0


async def listen(
    conninfo: str, channel: str, on_notification: Callable[[str | None], None]
) -> None:
    """Until canceled. A connection that is broken or delivers nothing is replaced."""
    wait = GrowingWait()
    while True:
        try:
            connection = await AsyncConnection.connect(conninfo, autocommit=True)
            wait.reset()
            async with connection:
                await _receive(connection, channel, on_notification)
        except (psycopg.Error, OSError) as error:
            log.debug("listening ended: %s", error)
        on_notification(None)
        await asyncio.sleep(wait.next(RETRY_SECONDS))


async def _receive(
    connection: AsyncConnection[Any], channel: str, on_notification: Callable[[str | None], None]
) -> None:
    """Until a probe does not come back. Any notification proves that the connection delivers; only
    after a long silence is a probe needed. All listeners of a fleet receive the probe of one."""
    async with asyncio.timeout(PROBE_TIMEOUT_SECONDS):
        await connection.execute(f"listen {channel}".encode())
    on_notification("")  # notifications sent before LISTEN were missed
    spread = 0.75 + connection.info.backend_pid % 50 / 100  # not all at once
    silence = 0.0
    while True:
        if silence <= 0.0:
            async with asyncio.timeout(PROBE_TIMEOUT_SECONDS):  # a frozen server never responds
                await connection.execute("select pg_notify(%s, %s)", (channel, _PROBE))
        received = False
        async for notification in connection.notifies(timeout=silence or PROBE_TIMEOUT_SECONDS):
            received = True
            if notification.payload != _PROBE:
                on_notification(notification.payload)
        if not received and silence <= 0.0:
            return
        silence = _SILENCE_SECONDS * spread if received else 0.0
