"""What the harness asks of a side."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

#: Jobs of one bulk call, for everybody.
BULK = 5000


class Side:
    """One job queue. `make`, then `open` and any of the rest, each in a process of its own."""

    name: ClassVar[str]
    #: What it keeps of a finished job, and how it was set, for the reader of the results.
    terms: ClassVar[str]
    #: The package whose version is told and without which the side is absent; "": always there.
    package: ClassVar[str] = ""
    #: Counts jobs that are not finished.
    left: ClassVar[str] = ""
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
        """How one of its processes is started; role, side, url, number and file follow."""
        return [sys.executable, "-m", "bench.child"]

    async def make(self) -> None:
        """Its tables, in an empty database."""
        raise NotImplementedError

    async def open(self) -> None:
        raise NotImplementedError

    async def one(self, sent: float) -> None:
        """One job, enqueued and durable when this returns."""
        raise NotImplementedError

    def opened(self) -> Callable[[float], None] | None:
        """The same for callers that block, where it knows them: a function that enqueues one."""
        return None

    async def many(self, count: int) -> None:
        """So many jobs, by its fastest documented way that answers durable."""
        raise NotImplementedError

    async def work(self) -> None:
        """Until killed; the handler calls `tick`."""
        raise NotImplementedError
