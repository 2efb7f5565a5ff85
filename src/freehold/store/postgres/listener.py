"""LISTEN: notifications arrive within a millisecond, if the connection allows it.

A pooler in transaction mode delivers none. The listener finds that out by probes, notifications to
itself, and calls back with None, so that workers keep polling as often as before.

Behind a pooler the first probe comes from a second connection: one of the client's own would be
delivered in transaction mode too, whenever the pooler sends it over the server connection that
executed LISTEN. That connection keeps listening when other clients use it, and PgBouncer logs each
notification that it then gets. So the first probe has a channel of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
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
_PROBE_CHANNEL = "freehold_probe"
_RETRY_SECONDS = 1.0
#: Behind a pooler that delivers nothing: its mode changes rarely.
_POOLED_RETRY_SECONDS = 60.0


async def listen(
    conninfo: str, channel: str, on_notification: Callable[[str | None], None]
) -> None:
    """Until canceled."""
    await keep_listening(
        conninfo,
        lambda connection: _receive(connection, channel, on_notification),
        lambda: on_notification(None),
    )


async def keep_listening(
    conninfo: str,
    receive: Callable[[AsyncConnection[Any]], Awaitable[None]],
    on_lost: Callable[[], None],
) -> None:
    """Until canceled. A connection that is broken or delivers nothing is replaced."""
    wait = GrowingWait()
    while True:
        try:
            connection = await AsyncConnection.connect(conninfo, autocommit=True)
            wait.reset()
            async with connection:
                if is_delivered := await _delivers(connection, conninfo):
                    await receive(connection)
        except (psycopg.Error, OSError) as error:
            log.debug("listening ended: %s", error)
            is_delivered = True
        on_lost()
        await asyncio.sleep(wait.next(_RETRY_SECONDS) if is_delivered else _POOLED_RETRY_SECONDS)


async def _delivers(connection: AsyncConnection[Any], conninfo: str) -> bool:
    """Whether notifications reach this connection: not through a pooler in transaction mode."""
    async with asyncio.timeout(PROBE_TIMEOUT_SECONDS):  # a frozen server never responds
        cursor = await connection.execute("select pg_backend_pid()")
        row = await cursor.fetchone()
    process = connection.info.backend_pid
    if row is not None and row[0] == process:
        return True  # a pooler has numbers of its own
    async with asyncio.timeout(PROBE_TIMEOUT_SECONDS):
        await connection.execute(f"listen {_PROBE_CHANNEL}".encode())
        async with await AsyncConnection.connect(conninfo, autocommit=True) as other:
            await other.execute("select pg_notify(%s, %s)", (_PROBE_CHANNEL, str(process)))
    # Closed here, because an open generator keeps the connection for itself.
    async with aclosing(connection.notifies(timeout=PROBE_TIMEOUT_SECONDS)) as received:
        async for notification in received:
            if notification.payload == str(process):  # not the probe of another listener
                break
        else:
            return False
    await connection.execute(f"unlisten {_PROBE_CHANNEL}".encode())
    return True


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
