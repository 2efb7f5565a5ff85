"""The interface of a contender: one job queue that the harness measures."""

from __future__ import annotations

import importlib.metadata
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from bench.counting import tick

#: Jobs of one bulk call, the same for every contender.
BULK = 5000

# Jobs that differ: 5 queues, 3 priorities, 1 KiB of arguments each.
QUEUES = ("mail", "image", "report", "import", "billing")
PRIORITIES = (-10, 0, 10)
WIDE_TEXT = random.Random(1).randbytes(500).hex()  # repeated bytes would be compressed


def mixed(count: int) -> list[tuple[str, int]]:
    """Queue and priority of each job, in no order."""
    rng = random.Random(count)
    return [(rng.choice(QUEUES), rng.choice(PRIORITIES)) for _ in range(count)]


class Retried:
    """The body of a handler that may fail once: one process runs both attempts."""

    def __init__(self) -> None:
        self._failed: set[int] = set()

    def __call__(self, number: int, every: int) -> None:
        """Of jobs 0, 1, 2 ... each ``every``-th fails in its first attempt; 0: none does."""
        if every and number % every == 0 and number not in self._failed:
            self._failed.add(number)
            raise ConnectionError("the remote system did not respond")
        tick()


class Contender:
    """One job queue. `install` first, then `open` and any of the rest, each in its own process."""

    name: ClassVar[str]
    #: What it keeps of a finished job, and its settings, for the reader of the results.
    terms: ClassVar[str]
    #: The package that provides the version; if it is not installed, the contender is absent.
    #: Empty: always present.
    package: ClassVar[str] = ""
    #: A query that counts the jobs that are not finished.
    unfinished: ClassVar[str] = ""
    on_postgres: ClassVar[bool] = True

    def __init__(self, url: str) -> None:
        self.url = url

    @classmethod
    def version(cls, node: Path | None) -> str | None:
        """None: not installed here."""
        if not cls.package:
            return "raw"
        try:
            return importlib.metadata.version(cls.package)
        except importlib.metadata.PackageNotFoundError:
            return None

    @classmethod
    def command(cls, node: Path | None) -> list[str]:
        """Starts one of its processes; role, contender, url, number and file follow."""
        return [sys.executable, "-m", "bench.child"]

    async def install(self) -> None:
        """Create its tables in an empty database."""
        raise NotImplementedError

    async def open(self) -> None:
        raise NotImplementedError

    async def enqueue(self, sent: float) -> None:
        """Enqueue one job, which is durable when this returns."""
        raise NotImplementedError

    def open_blocking(self) -> Callable[[float], None] | None:
        """Returns the blocking form of `enqueue`; None if there is none."""
        return None

    async def enqueue_bulk(self, count: int) -> None:
        """Enqueue ``count`` jobs by the fastest documented call that returns when they are
        durable."""
        raise NotImplementedError

    async def enqueue_mixed(self, count: int) -> None:
        """The same for jobs that differ: see `mixed`."""
        raise NotImplementedError

    async def enqueue_retried(self, count: int, every: int) -> None:
        """Enqueue jobs that call `Retried`, and are retried at once."""
        raise NotImplementedError

    async def work(self) -> None:
        """Run a worker until killed; its handler calls `tick`."""
        raise NotImplementedError
