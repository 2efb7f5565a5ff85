"""The state of the demo at one time, and the interface of its display."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec

from freehold.model.worker_info import LiveWorker
from freehold.store.types import JobCounts, QueueInfo

Tone: TypeAlias = Literal["plain", "good", "bad", "quiet"]


class OrphanedJob(msgspec.Struct, frozen=True):
    """A job that the killed worker held, and its status now."""

    id: int
    task: str
    target: str | None
    status: str
    is_recovered: bool


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the demo at one time."""

    store: str
    #: A sentence about what happens now.
    headline: str
    ended: int
    jobs: int
    #: Running worker processes, including those that have not sent a heartbeat yet.
    alive: int
    workers: Sequence[LiveWorker]
    queues: Sequence[QueueInfo]
    counts: JobCounts
    orphans: Sequence[OrphanedJob]


class SnapshotView(Protocol):
    """The display: a terminal, or lines into a pipe."""

    def log(self, text: str, tone: Tone = "plain") -> None:
        """Adds a line that stays."""
        ...

    def show(self, snapshot: Snapshot) -> None:
        """Replaces the snapshot."""
        ...
