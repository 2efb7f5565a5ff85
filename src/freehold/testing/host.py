"""The real tenant host, with its threads and its clock replaced for virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from freehold.tasks import Registry
from freehold.tenants.host import TenantHost
from freehold.tenants.served_tenants import TenantSource
from freehold.tenants.shared_renewal_thread import SharedRenewalThread
from freehold.tenants.tenant_worker import SharedThreads
from freehold.testing.inline import InlineThreads
from freehold.worker.config import WorkerSettings


class InlineRenewalHost(SharedRenewalThread):
    """Renews leases on the worker's own loop: on virtual time no handler can block it."""

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
    """Built and run on a VirtualLoop with the clock of the tenants' databases.

    ``name_worker`` returns a unique owner for each worker of a tenant.
    """
    return TenantHost(
        directory,
        tasks,
        settings,
        chance=chance,
        threads=InlineSharedThreads(),
        renewal_thread=InlineRenewalHost(),
        name_worker=name_worker,
    )
