"""The fleets of `freehold up`: one for a store; or hosts for many tenants, and one fleet for each
tenant that has a number of workers of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from freehold.app import Freehold, TenantSelection
from freehold.errors import BadInput
from freehold.manager.store_snapshot import ManagerStore
from freehold.model.scaling import ScaleRule, WorkerCount, parse_worker_count
from freehold.model.tenant import check_tenant
from freehold.tenants.backlog import TenantBacklog


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """One fleet: whose jobs it runs, how many workers it has, and what it scales by."""

    #: The app of the store, or of one tenant.
    app: Freehold
    rule: ScaleRule
    #: Arguments of its workers, and the part of its folder's name by which it differs from others.
    arguments: tuple[str, ...]
    mark: str
    #: Called in the manager's event loop.
    store: Callable[[], ManagerStore]


def parse_tenant_counts(given: Collection[str]) -> dict[str, WorkerCount]:
    """``acme=2``, ``acme=1-4``."""
    found = {}
    for text in given:
        name, is_given, count = text.partition("=")
        if not is_given:
            raise BadInput(f"--tenant-count {text!r}: write it as NAME=2, or as NAME=1-4")
        found[check_tenant(name)] = parse_worker_count(count)
    return found


def plan_fleets(
    app: Freehold,
    rule: ScaleRule,
    tenants: TenantSelection,
    configured: Mapping[str, WorkerCount],
    given: Mapping[str, WorkerCount],
) -> list[FleetPlan]:
    """``configured``: by the settings, for tenants of any `up`; ``given``: by flags of this one."""
    if tenants is None:
        if given:
            raise BadInput("--tenant-count is for the tenants of --tenants: give that, too")
        return [FleetPlan(app, rule, (), "", lambda: app._client.awaited)]
    if app._tenant_name is not None:
        raise BadInput("give --tenants or --tenant, not both")
    if tenants != "all" and (others := sorted(given.keys() - set(tenants))):
        raise BadInput(f"--tenant-count of {others[0]}, which --tenants does not name")
    counts = {
        name: count
        for name, count in {**configured, **given}.items()
        if tenants == "all" or name in tenants
    }
    plans = [_fleet_of_tenant(app.tenant(name), rule, counts[name]) for name in sorted(counts)]
    if tenants == "all" or set(tenants) - counts.keys():
        plans.insert(0, _fleet_of_hosts(app, rule, tenants, counts.keys()))
    return plans


def _fleet_of_tenant(app: Freehold, rule: ScaleRule, count: WorkerCount) -> FleetPlan:
    own = replace(rule, default_count=count.default_count, max_count=count.max_count)
    return FleetPlan(app, own, (), "", lambda: app._client.awaited)


def _fleet_of_hosts(
    app: Freehold, rule: ScaleRule, tenants: TenantSelection, without: Collection[str]
) -> FleetPlan:
    if tenants is None or tenants == "all":
        names, arguments = None, ["--tenants", "all"]
        for name in sorted(without):
            arguments += ["--without-tenant", name]
    else:
        names = sorted(set(tenants) - set(without))
        arguments = ["--tenants", ",".join(names)]
    enough = rule.max_count * rule.concurrency

    def backlog() -> ManagerStore:
        return TenantBacklog(app.tenants.served(names, without), enough)

    return FleetPlan(app, rule, tuple(arguments), " tenants", backlog)
