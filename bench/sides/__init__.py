"""Who is measured. Each side is one file; here they come together."""

from __future__ import annotations

from bench.sides.freehold import (
    FreeholdClaimers,
    FreeholdLimited,
    FreeholdPostgres,
    FreeholdSqlite,
    FreeholdTenants,
)
from bench.sides.graphile import Graphile, GraphileTuned
from bench.sides.pgqueuer import PgQueuer
from bench.sides.procrastinate import Procrastinate
from bench.sides.raw import Raw
from bench.sides.side import Side

SIDES: dict[str, type[Side]] = {
    side.name: side
    for side in (
        Raw,
        FreeholdPostgres,
        FreeholdSqlite,
        PgQueuer,
        Procrastinate,
        Graphile,
        GraphileTuned,
    )
}
#: Those that are measured against Freehold itself, for growth.
OURS: dict[str, type[Side]] = {
    side.name: side for side in (FreeholdLimited, FreeholdClaimers, FreeholdTenants)
}
