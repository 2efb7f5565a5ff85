"""The real worker with its outside put on virtual time."""

from __future__ import annotations

from collections.abc import Callable

from freehold.store.database import Database
from freehold.tasks import Registry
from freehold.telemetry import Telemetry
from freehold.testing.inline import InlineThreads
from freehold.testing.inline_renewal import RenewalTask
from freehold.worker.config import WorkerSettings
from freehold.worker.worker import Worker


def virtual_worker(
    database: Database,
    tasks: Registry,
    settings: WorkerSettings,
    *,
    chance: Callable[[], float],
    owner: str = "w1",
    telemetry: Telemetry | None = None,
) -> Worker:
    """To be run on a VirtualLoop whose clock is the database's.

    With `random.Random(seed).random` as its chance, the same happens again.
    """
    return Worker(
        database,
        tasks,
        settings,
        telemetry=telemetry,
        owner=owner,
        chance=chance,
        threads=InlineThreads(),
        keep=RenewalTask,
    )
