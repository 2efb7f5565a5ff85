"""The database of a run on a cluster: every process has the URL with all hosts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psycopg

from freehold.model.history import Event
from tests.chaos.cluster import Cluster
from tests.chaos.database import read_events


class ClusterTarget:
    """Three nodes under Patroni."""

    def __init__(self, logs: Path, *, synchronous: bool) -> None:
        self.cluster = Cluster(logs, synchronous=synchronous)
        self.url = self.cluster.url

    async def start(self) -> None:
        await asyncio.to_thread(self.cluster.start)

    def url_for(self, name: str) -> str:
        return f"{self.url}&application_name={name}"

    def events(self) -> list[Event]:
        with psycopg.connect(self.url) as connection:
            return read_events(connection)

    async def hold_snapshot(self, seconds: float) -> None:
        """No fault of a cluster."""

    async def close(self) -> None:
        await asyncio.to_thread(self.cluster.close)
