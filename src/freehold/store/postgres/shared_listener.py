"""LISTEN for many tenants over one connection, which proves itself as in `wake`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import psycopg
from psycopg import AsyncConnection

from freehold.store.postgres.listener import PROOF_SECONDS, RETRY_SECONDS
from freehold.telemetry import log

#: Channel -> tenant.
Channels = Mapping[str, str]


async def listen_to_all(
    conninfo: str,
    own: str,
    channels: Callable[[], Channels],
    heard: Callable[[str, str | None], None],
) -> None:
    """Until cancelled. ``own`` is the channel on which we expect to hear ourselves."""
    while True:
        try:
            connection = await AsyncConnection.connect(conninfo, autocommit=True)
            async with connection:
                await _follow(connection, own, channels, heard)
        except (psycopg.Error, OSError) as error:
            log.debug("listening ended: %s", error)
        heard("", None)
        await asyncio.sleep(RETRY_SECONDS)


async def _follow(
    connection: AsyncConnection[Any],
    own: str,
    channels: Callable[[], Channels],
    heard: Callable[[str, str | None], None],
) -> None:
    await connection.execute(f"listen {own}".encode())
    known: Channels = {}
    while True:
        wanted = channels()
        await _change(connection, known, wanted)
        for channel in wanted.keys() - known.keys():
            heard(wanted[channel], "")  # whatever was missed until now
        known = wanted
        await connection.execute("select pg_notify(%s, '')", (own,))
        proven = False
        async for notification in connection.notifies(timeout=PROOF_SECONDS):
            if notification.channel == own:
                proven = True
            elif notification.channel in known:
                heard(known[notification.channel], notification.payload)
        if not proven:
            return


async def _change(connection: AsyncConnection[Any], known: Channels, wanted: Channels) -> None:
    words = [f"unlisten {channel}" for channel in sorted(known.keys() - wanted.keys())]
    words += [f"listen {channel}" for channel in sorted(wanted.keys() - known.keys())]
    if words:
        await connection.execute("; ".join(words).encode())
