"""What it costs to belong together: members of a batch against plain jobs, and the end of a large
workflow.

    plain      jobs of one bulk call
    batch      the same jobs as members of one batch with an `on_end`
    map        a workflow of one `flow.map`, and a node that follows it. A workflow has at most
               10,000 nodes; a map is one of them, and this is the way to wait for more jobs
    edges      a workflow of two layers of nodes, each of the second after all of the first

Each is stored and drained by one process. Filling and draining both count for the WAL of a job.
Vacuum and checkpoints are off meanwhile: they would fall into some measurements only.
"""

from __future__ import annotations

import functools
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.contenders.freehold import FreeholdPostgres
from bench.contenders.freehold_flows import (
    FOLLOWER,
    FreeholdBatch,
    FreeholdEdges,
    FreeholdMap,
    layer,
)
from bench.measures import DRAIN_SECONDS, Bench, drain
from bench.rounds import Run, run_interleaved
from bench.statements import StatementStatistics

#: A drain may take so long for each job; a slow machine needs a fraction of it.
_SECONDS_PER_JOB = 0.001
_FLOW_TABLES = ("flow", "flow_end", "flow_node", "flow_edge", "flow_range", "flow_callback")
#: Of the table and its indexes, where a row is found by either.
_ROWS = """
    select relname, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0),
        n_tup_ins + n_tup_upd + n_tup_del
    from pg_stat_user_tables where schemaname = 'freehold' and relname = any (%s)
"""
#: From the last end before the follower to its start; and how long all of it took.
_TIMES = """
    select extract(epoch from f.leased_at - o.last), extract(epoch from f.leased_at - o.first)
    from (select leased_at from freehold.history where task = '{follower}') f,
        (select max(finished_at) as last, min(leased_at) as first
         from freehold.history where task <> '{follower}') o
"""


@dataclass(frozen=True)
class Sizes:
    """The sizes of a run. ``members``: of the batch, and as many plain jobs. ``fan_in``: jobs of
    the map, and edges."""

    rounds: int = 3
    members: int = 1_000_000
    fan_in: int = 100_000


QUICK = Sizes(rounds=1, members=600, fan_in=400)


def measure(bench: Bench, sizes: Sizes, only: list[str], out: Path | None) -> Run:
    width = layer(sizes.fan_in)
    cases = {
        "plain": functools.partial(_plain, bench, sizes.members),
        "batch": functools.partial(_flow, bench, FreeholdBatch, sizes.members, sizes.members),
        "map": functools.partial(_flow, bench, FreeholdMap, sizes.fan_in, sizes.fan_in),
        "edges": functools.partial(_flow, bench, FreeholdEdges, sizes.fan_in, 2 * width),
    }
    details = {
        "command": shlex.join(["scripts/bench", *sys.argv[1:]]),
        "server": bench.server.describe(),
        "round_count": sizes.rounds,
        "sizes": {"members": sizes.members, "map": sizes.fan_in, "edges": width * width},
    }
    run = Run("flows", details)
    chosen = {name: case for name, case in cases.items() if not only or name in only}
    run_interleaved(run, chosen, sizes.rounds, out)
    return run


def _plain(bench: Bench, jobs: int) -> dict[str, Any]:
    return _filled_and_drained(bench, FreeholdPostgres, jobs, jobs)[1]


def _flow(
    bench: Bench, contender: type[FreeholdBatch], number: int, members: int
) -> dict[str, Any]:
    """``members``: without the job that follows them."""
    url, figures = _filled_and_drained(bench, contender, number, members + 1)
    with bench.server.connect(url) as connection:
        times = connection.execute(_TIMES.format(follower=FOLLOWER).encode()).fetchone()
        rows = connection.execute(_ROWS, [list(_FLOW_TABLES)]).fetchall()
    assert times is not None
    return figures | {
        "follower_ms": 1000 * float(times[0]),
        "all_seconds": float(times[1]),
        "rows_read": {name: read for name, read, _ in rows},
        "rows_written": {name: written for name, _, written in rows},
    }


def _filled_and_drained(
    bench: Bench, contender: type[FreeholdPostgres], number: int, stored: int
) -> tuple[str, dict[str, Any]]:
    """``stored``: jobs by the bulk call of this number. A producer stores one job before it."""
    url, jobs = bench.fresh_store(contender), stored + 1
    before = bench.server.counters(url)
    filled = bench.fleet.produce(contender, "enqueue-bulk", url, number)
    fill = bench.server.counters(url).per_job(before, jobs)
    with bench.server.connect(url) as connection:
        connection.execute("vacuum analyze")
    bench.server.checkpoint()
    statements = StatementStatistics(bench.server, url)
    seconds = max(DRAIN_SECONDS, jobs * _SECONDS_PER_JOB)
    figures = drain(bench, contender, url, jobs, seconds=seconds)
    return url, {
        **figures,
        "bulk": filled["rate"],
        "bulk_cpu_us": filled["cpu_us"],
        "fill": fill,
        "wal_of_a_job": fill["wal_bytes"] + figures["wal_bytes"],
        **statements.averages(jobs),
        "flow_statements": statements.of_flows(),
    }
