"""What the demo sees at one moment, and to whom it shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

import msgspec

from freehold.model.worker_info import LiveWorker
from freehold.store.types import JobCounts, QueueInfo

Tone: TypeAlias = Literal["plain", "good", "bad", "quiet"]


class Missing(msgspec.Struct, frozen=True):
    """A job that the killed worker had in hand, and where it is now."""

    id: int
    task: str
    target: str | None
    now: str
    is_back: bool


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One look."""

    store: str
    #: What happens now, in a sentence.
    act: str
    ended: int
    jobs: int
    #: Worker processes that live, also those of which the store has not heard yet.
    alive: int
    workers: Sequence[LiveWorker]
    queues: Sequence[QueueInfo]
    counts: JobCounts
    missing: Sequence[Missing]


class SnapshotView(Protocol):
    """Where it is shown: a terminal, or lines into a pipe."""

    def say(self, text: str, tone: Tone = "plain") -> None:
        """Something has happened, and is told for good."""
        ...

    def show(self, scene: Snapshot) -> None:
        """How it looks now."""
        ...
