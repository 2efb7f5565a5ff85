"""LISTEN for many tenants over one connection, which is probed as in `listener`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from psycopg import AsyncConnection

from freehold.store.postgres.listener import PROBE_TIMEOUT_SECONDS, keep_listening

#: Channel -> tenant.
Channels = Mapping[str, str]


async def listen_to_all(
    conninfo: str,
    probe_channel: str,
    channels: Callable[[], Channels],
    on_notification: Callable[[str, str | None], None],
) -> None:
    """Until canceled."""
    await keep_listening(
        conninfo,
        lambda connection: _receive(connection, probe_channel, channels, on_notification),
        lambda: on_notification("", None),
    )


async def _receive(
    connection: AsyncConnection[Any],
    probe_channel: str,
    channels: Callable[[], Channels],
    on_notification: Callable[[str, str | None], None],
) -> None:
    """Until a probe does not come back."""
    known: Channels = {probe_channel: ""}
    await _change(connection, {}, known)
    while True:
        wanted = {probe_channel: "", **channels()}
        await _change(connection, known, wanted)
        for channel in wanted.keys() - known.keys():
            on_notification(wanted[channel], "")  # notifications sent before LISTEN were missed
        known = wanted
        await _execute(connection, f"notify {probe_channel}")
        received_probe = False
        async for notification in connection.notifies(timeout=PROBE_TIMEOUT_SECONDS):
            if notification.channel == probe_channel:
                received_probe = True
            elif notification.channel in known:
                on_notification(known[notification.channel], notification.payload)
        if not received_probe:
            return


async def _change(connection: AsyncConnection[Any], known: Channels, wanted: Channels) -> None:
    commands = [f"unlisten {channel}" for channel in sorted(known.keys() - wanted.keys())]
    commands += [f"listen {channel}" for channel in sorted(wanted.keys() - known.keys())]
    if commands:
        await _execute(connection, "; ".join(commands))


async def _execute(connection: AsyncConnection[Any], command: str) -> None:
    async with asyncio.timeout(PROBE_TIMEOUT_SECONDS):  # a frozen server never responds
        await connection.execute(command.encode())
