"""The real host, which serves many tenants, with its outside put on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from freehold.tasks import Registry
from freehold.tenants.host import TenantHost
from freehold.tenants.shared_renewal_thread import SharedRenewalThread
from freehold.tenants.tenant_source import TenantSource
from freehold.tenants.tenant_worker import SharedThreads
from freehold.testing.inline import InlineThreads
from freehold.worker.config import WorkerSettings


class InlineRenewalHost(SharedRenewalThread):
    """On the worker's own loop: on virtual time nothing can block it."""

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()

    async def stop(self) -> None:
        """There is no thread."""


class InlineSharedThreads(SharedThreads, InlineThreads):
    """Plain functions run at once, for all tenants."""


def virtual_host(
    directory: TenantSource,
    tasks: Registry,
    settings: WorkerSettings,
    *,
    chance: Callable[[], float],
    name_worker: Callable[[], str],
) -> TenantHost:
    """To be run on a VirtualLoop whose clock is the tenants' databases'.

    ``name_worker``: an owner that never comes again, for each worker of a tenant.
    """
    return TenantHost(
        directory,
        tasks,
        settings,
        chance=chance,
        threads=InlineSharedThreads(),
        keepers=InlineRenewalHost(),
        name_worker=name_worker,
    )
