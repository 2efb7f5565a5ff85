"""The tenants of a scenario, and their faults."""

from __future__ import annotations

import random
from dataclasses import dataclass

TENANTS = ("acme", "beta", "core")
SHARDS = ("home", "east")


@dataclass(frozen=True, slots=True)
class TenantPlan:
    """One tenant. Calls and operations are dealt out to the tenants by their numbers."""

    name: str
    shard: str
    weight: float
    max_slots: int | None


@dataclass(frozen=True, slots=True)
class TenantFault:
    """A fault of a tenant: it is paused, or its store is down."""

    at: float
    kind: str
    tenant: str
    seconds: float


def tenant_plans(chance: random.Random) -> tuple[TenantPlan, ...]:
    return tuple(
        TenantPlan(
            name,
            shard=chance.choice(SHARDS),
            weight=chance.choice((1.0, 1.0, 3.0)),
            max_slots=chance.choice((None, None, 1, 2)),
        )
        for name in TENANTS[: chance.choice((2, 2, 3))]
    )


def tenant_fault_plans(
    chance: random.Random, tenants: tuple[TenantPlan, ...], horizon: float
) -> tuple[TenantFault, ...]:
    kinds = ["tenant_paused", "store_down"]
    faults = [_tenant_fault(chance, tenants, kind, horizon) for kind in kinds]
    if chance.random() < 0.5:
        faults.append(_tenant_fault(chance, tenants, "store_stays_down", horizon))
    return tuple(faults)


def _tenant_fault(
    chance: random.Random, tenants: tuple[TenantPlan, ...], kind: str, horizon: float
) -> TenantFault:
    tenant = chance.choice(tenants)
    is_alone = all(other is tenant or other.shard != tenant.shard for other in tenants)
    if kind == "store_down" and is_alone:  # a server that hangs does so for its whole shard
        kind = chance.choice(("store_down", "store_hangs"))
    at = round(chance.uniform(0.0, horizon), 3)
    return TenantFault(at, kind, tenant.name, chance.choice((0.8, 3.0, 6.0)))
