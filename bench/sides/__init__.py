"""Who is measured. Each side is one file; here they come together."""

from __future__ import annotations

from bench.sides.graphile import Graphile, GraphileTuned
from bench.sides.leasehold import (
    LeaseholdClaimers,
    LeaseholdLimited,
    LeaseholdPostgres,
    LeaseholdSqlite,
    LeaseholdTenants,
)
from bench.sides.pgqueuer import PgQueuer
from bench.sides.procrastinate import Procrastinate
from bench.sides.raw import Raw
from bench.sides.side import Side

SIDES: dict[str, type[Side]] = {
    side.name: side
    for side in (
        Raw, LeaseholdPostgres, LeaseholdSqlite, PgQueuer, Procrastinate, Graphile, GraphileTuned,
    )
}  # fmt: skip
#: Those that are measured against Leasehold itself, for growth.
OURS: dict[str, type[Side]] = {
    side.name: side for side in (LeaseholdLimited, LeaseholdClaimers, LeaseholdTenants)
}
