"""The real worker, with its threads and its clock replaced for virtual time."""

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
    """Built and run on a VirtualLoop with the clock of the database.

    With `random.Random(seed).random` as ``chance``, every run is the same.
    """
    return Worker(
        database,
        tasks,
        settings,
        telemetry=telemetry,
        owner=owner,
        chance=chance,
        threads=InlineThreads(),
        start_renewal=RenewalTask,
    )
