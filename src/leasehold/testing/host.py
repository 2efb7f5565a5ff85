"""The real host, which serves many tenants, with its outside put on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from leasehold.tasks import Registry
from leasehold.testing.inline import InlineThreads
from leasehold.worker.config import WorkerSettings
from leasehold.worker.directory import Directory
from leasehold.worker.host import Host
from leasehold.worker.keepers import Keepers
from leasehold.worker.lodger import LentThreads


class HereKeepers(Keepers):
    """On the worker's own loop: on virtual time nothing can block it."""

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def stop(self) -> None:
        """There is no thread."""


class InlineLentThreads(LentThreads, InlineThreads):
    """Plain functions run at once, for all tenants."""


def virtual_host(
    directory: Directory, tasks: Registry, settings: WorkerSettings, *,
    chance: Callable[[], float], name_worker: Callable[[], str],
) -> Host:  # fmt: skip
    """To be run on a VirtualLoop whose clock is the tenants' databases'.

    ``name_worker``: an owner that never comes again, for each worker of a tenant.
    """
    return Host(
        directory, tasks, settings, chance=chance, threads=InlineLentThreads(),
        keepers=HereKeepers(), name_worker=name_worker,
    )  # fmt: skip
