"""The contenders, one file each."""

from __future__ import annotations

from bench.contender import Contender
from bench.contenders.freehold import (
    FreeholdClaimers,
    FreeholdLimited,
    FreeholdPostgres,
    FreeholdSqlite,
    FreeholdTenants,
)
from bench.contenders.freehold_flows import FreeholdBatch, FreeholdEdges, FreeholdMap
from bench.contenders.graphile import Graphile, GraphileTuned
from bench.contenders.pgqueuer import PgQueuer
from bench.contenders.procrastinate import Procrastinate
from bench.contenders.raw import Raw

CONTENDERS: dict[str, type[Contender]] = {
    contender.name: contender
    for contender in (
        Raw,
        FreeholdPostgres,
        FreeholdSqlite,
        PgQueuer,
        Procrastinate,
        Graphile,
        GraphileTuned,
    )
}
#: Variants of Freehold, which the growth cases compare with Freehold itself.
VARIANTS: dict[str, type[Contender]] = {
    variant.name: variant
    for variant in (
        FreeholdLimited,
        FreeholdClaimers,
        FreeholdTenants,
        FreeholdBatch,
        FreeholdMap,
        FreeholdEdges,
    )
}
