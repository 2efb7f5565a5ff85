"""The load, the length of leases, and how often each fault happens."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

StoreKind = Literal["postgres", "sqlite"]
Replication = Literal["synchronous", "asynchronous"]
#: The limit key of a share of the jobs; its limit is checked.
LIMITED_KEY = "limited"
LIMITED_TO = 7

#: Mean seconds between two faults of a kind. Thirty minutes of these are more than a thousand
#: kills, two hundred freezes and a hundred hard stops of PostgreSQL.
ON_PROCESSES = {"kill": 1.4, "freeze": 6.5, "drain": 9.0}
ON_POSTGRES = {
    "hard_stop": 15.5,
    "terminate": 29.0,
    "cut": 3.0,
    "cut_at_commit": 3.0,
    "answer_lost": 3.0,
    "answer_lost_at_commit": 3.0,
    "request_lost": 5.0,
    "stall": 17.0,
    "blackhole": 67.0,
    "snapshot": 37.0,
    "promotion": 290.0,
}
#: Faults of a cluster follow each other. How many of each kind are in one round, in random order.
CLUSTER_FAULTS = {
    "switchover": 4,
    "node_crash": 3,
    "node_freeze": 2,
    "partition": 1,
    "lagging_crash": 1,
}
ON_SQLITE = {"snapshot": 17.0, "writer": 13.0, "disk_full": 29.0}


@dataclass(frozen=True, slots=True)
class Plan:
    """All parameters of a run; every process gets them."""

    store: StoreKind
    #: How long faults happen at least.
    seconds: float
    seed: int
    folder: Path
    workers: int = 6
    concurrency: int = 10
    producers: int = 2
    callers: int = 4
    #: For all producers together.
    jobs_per_second: float = 150.0
    #: Batches, workflows and jobs that gather, for all producers together. 0: none.
    flows_per_second: float = 1.0
    lease_seconds: float = 2.5
    grace_seconds: float = 0.8
    #: Fault -> mean seconds between two of them.
    faults: dict[str, float] = field(default_factory=dict)
    #: What must have happened before the faults end: a fault, or a name of `progress` -> how often.
    at_least: dict[str, int] = field(default_factory=dict)
    #: After this time the faults end in any case: only a standstill takes so long.
    max_seconds: float = 300.0
    #: PgBouncer in transaction mode in front of PostgreSQL.
    pooled: bool = False
    #: Three nodes under Patroni, and whether a commit waits for a standby.
    replication: Replication | None = None
    #: How long jobs may take to end after the last fault.
    end_seconds: float = 180.0

    @property
    def record_folder(self) -> Path:
        return self.folder / "records"

    @property
    def healed(self) -> Path:
        """Once this file exists, every handler succeeds at once and the producers end."""
        return self.folder / "healed"


def faults_for(store: StoreKind, *, pooled: bool) -> dict[str, float]:
    faults = ON_PROCESSES | (ON_POSTGRES if store == "postgres" else ON_SQLITE)
    if pooled:  # the pooler cannot be redirected to the new server
        del faults["promotion"]
    return faults


def on_cluster(plan: Plan, jobs_per_second: float, *, asynchronous: bool, calm: bool) -> Plan:
    """Less load, because three servers share the machine, and longer leases, which must last
    through a switch-over. Asynchronous: only crashes of a primary whose standbys lag."""
    faults = ["lagging_crash"] if asynchronous else [*CLUSTER_FAULTS]
    return replace(
        plan,
        replication="asynchronous" if asynchronous else "synchronous",
        workers=3,
        producers=1,
        jobs_per_second=jobs_per_second,
        flows_per_second=plan.flows_per_second * jobs_per_second / 150.0,
        lease_seconds=5.0,
        faults={} if calm else dict.fromkeys(faults, 0.0),
    )
