"""Whether the cost of a job stays the same while everything around it grows.

Each case is the clean one with a single difference: one process drains the same number of plain
jobs, from a database that also holds a history, a backlog, a snapshot, lanes, a limit. The server
counts buffers, WAL and transactions, which hardly depend on other load of the machine; rates do.
"""

from __future__ import annotations

import contextlib
import functools
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.contender import BULK, Contender
from bench.contenders.freehold import (
    LIMITED_QUEUE,
    SLOW_TASK,
    TASK,
    FreeholdClaimers,
    FreeholdLimited,
    FreeholdPostgres,
    FreeholdTenants,
)
from bench.measures import Bench, drain
from bench.rounds import Measure, Run, run_interleaved
from bench.server import OPEN_SESSION
from bench.statements import StatementStatistics
from freehold import Freehold
from freehold.model.job import NewJob
from freehold.model.limit import Limit
from freehold.store.stage_sql import STAGE_SQL

LIMIT = 7
BLOCKED = "blocked"
#: Reads indexes only: counting a million blocked jobs takes longer than finishing the last ones.
_UNFINISHED_BUT_BLOCKED = """
    select (select count(*) from freehold.job
            where coalesce(stage in ({ready}, {lane_head}), false))
         + (select count(*) from freehold.job where stage = {leased})
         + (select count(*) from freehold.job
            where stage in ({ready}, {follower}, {paused_follower}) and target > '{blocked}')
""".format(blocked=BLOCKED, **STAGE_SQL)
CLAIMER_SLOTS, CLAIMER_PROCESSES = 64, 4


@dataclass(frozen=True)
class Sizes:
    """The sizes of a run."""

    rounds: int = 3
    jobs: int = 50_000
    finished: int = 1_000_000
    scheduled: int = 200_000
    lanes: int = 10_000
    behind: int = 1_000_000
    tenants: int = 50
    workers: int = 500
    seconds: float = 20.0


QUICK = Sizes(1, 600, 3000, 2000, 100, 3000, 3, 6, 2.0)
IDLE_PROCESSES = 2
#: For each tenant, until its first maintenance is over.
SETTLE_SECONDS = 0.1


def measure(
    bench: Bench, sizes: Sizes, only: list[str], out: Path | None, *, wide: bool = False
) -> Run:
    """``wide``: payloads and fleets grow, instead of the contents of the store."""
    fills = {"clean": _clean} | (PAYLOADS if wide else CASES)
    cases: dict[str, Measure] = {
        name: functools.partial(_case, bench, sizes, fill) for name, fill in fills.items()
    }
    if wide:
        for processes in (1, 2, 4, 8):
            measure = functools.partial(_case, bench, sizes, _clean, processes)
            cases[f"{processes} process{'es' if processes > 1 else ''}"] = measure
        cases[f"{sizes.tenants} tenants"] = functools.partial(_tenants, bench, sizes)
        cases["idle workers"] = functools.partial(_idle, bench, sizes)
    chosen = {name: case for name, case in cases.items() if not only or name in only}
    details = {
        "server": bench.server.describe(),
        "round_count": sizes.rounds,
        "sizes": {name: getattr(sizes, name) for name in sizes.__dataclass_fields__},
    }
    run = Run("growth", details)
    run_interleaved(run, chosen, sizes.rounds, out)
    return run


#: Fills a fresh database; what it opens stays open during the drain.
Fill = Callable[["CaseDatabase"], contextlib.AbstractContextManager[None]]


class CaseDatabase:
    """The database of one case, before it is drained."""

    def __init__(self, bench: Bench, url: str, sizes: Sizes) -> None:
        self.bench = bench
        self.url = url
        self.sizes = sizes
        self.contender: type[Contender] = FreeholdPostgres
        self.new_job: Callable[[int], NewJob] = lambda number: NewJob(task=TASK, args=_args())

    def sql(self, text: str) -> None:
        with self.bench.server.connect(self.url) as connection:
            connection.execute(text.encode())

    def enqueue(self, count: int, new_job: Callable[[int], NewJob]) -> None:
        with contextlib.closing(Freehold(self.url)) as app:
            for start in range(0, count, BULK):
                app.enqueue_many([new_job(n) for n in range(start, min(start + BULK, count))])


def _args(more: str = "") -> bytes:
    return b'{"sent": 0.0, "more": "%s"}' % more.encode() if more else b'{"sent": 0.0}'


def _case(bench: Bench, sizes: Sizes, fill: Fill, processes: int = 1) -> dict[str, Any]:
    database = CaseDatabase(bench, bench.fresh_store(FreeholdPostgres), sizes)
    with fill(database):
        database.enqueue(sizes.jobs, database.new_job)
        database.sql("vacuum analyze")
        bench.server.checkpoint()
        statements = StatementStatistics(bench.server, database.url)
        figures = drain(bench, database.contender, database.url, sizes.jobs, processes)
        return figures | statements.averages(sizes.jobs)


@contextlib.contextmanager
def _clean(database: CaseDatabase) -> Iterator[None]:
    yield


@contextlib.contextmanager
def _finished(database: CaseDatabase) -> Iterator[None]:
    database.sql(f"""
        insert into freehold.history (id, created_at, finished_at, priority, attempt,
            max_attempts, lost_attempts, state, queue, task, args)
        select -g, now(), now(), 0, 1, 5, 0, 'succeeded', 'default', '{TASK}', '{{"sent": 0.0}}'
        from generate_series(1, {database.sizes.finished}) g""")
    yield


@contextlib.contextmanager
def _scheduled(database: CaseDatabase) -> Iterator[None]:
    database.enqueue(
        database.sizes.scheduled, lambda _: NewJob(task=TASK, args=_args(), delay_seconds=86_400.0)
    )
    yield


@contextlib.contextmanager
def _held_snapshot(database: CaseDatabase) -> Iterator[None]:
    """A transaction that began before the drain: vacuum cannot remove rows that die meanwhile."""
    with database.bench.server.connect(database.url) as connection:
        connection.execute(f"set application_name = '{OPEN_SESSION}'".encode())
        connection.execute("begin isolation level repeatable read")
        connection.execute("select count(*) from pg_class")
        yield
        connection.execute("rollback")


@contextlib.contextmanager
def _lanes(database: CaseDatabase) -> Iterator[None]:
    database.new_job = lambda n: NewJob(
        task=TASK, args=_args(), target=f"lane {n % database.sizes.lanes}"
    )
    yield


@contextlib.contextmanager
def _lanes_beside_a_failed_head(database: CaseDatabase) -> Iterator[None]:
    with _lanes(database), _behind_a_failed_head(database):
        yield


@contextlib.contextmanager
def _behind_a_failed_head(database: CaseDatabase) -> Iterator[None]:
    """A lane whose first job has failed, and blocks the others."""
    database.sql(f"""
        insert into freehold.job (id, created_at, priority, max_attempts, stage, queue, task,
            target, args)
        select nextval('freehold.job_id'), now(), 0, 5,
            (case when g = 0 then {STAGE_SQL["failed"]} else {STAGE_SQL["follower"]} end)::"char",
            'default', '{TASK}', '{BLOCKED}', '{{"sent": 0.0}}'
        from generate_series(0, {database.sizes.behind}) g""")
    database.contender = type(
        "Behind", (FreeholdPostgres,), {"unfinished": _UNFINISHED_BUT_BLOCKED}
    )
    yield


@contextlib.contextmanager
def _beside_a_limit(database: CaseDatabase) -> Iterator[None]:
    """Another queue with a small limit and more jobs than can run during the drain."""
    database.contender = FreeholdLimited
    with contextlib.closing(Freehold(database.url)) as app:
        app.operator.set_queue_limit(LIMITED_QUEUE, Limit(max_leases=LIMIT))
    database.enqueue(database.sizes.jobs, lambda _: NewJob(task=SLOW_TASK, queue=LIMITED_QUEUE))
    yield


@contextlib.contextmanager
def _beside_claimers_of_a_limit(database: CaseDatabase) -> Iterator[None]:
    """Other processes claim from a queue with far more slots than its limit."""
    with contextlib.closing(Freehold(database.url)) as app:
        app.operator.set_queue_limit(LIMITED_QUEUE, Limit(max_leases=LIMIT))
    database.enqueue(CLAIMER_SLOTS * 10, lambda _: NewJob(task=SLOW_TASK, queue=LIMITED_QUEUE))
    database.contender = type(
        "Beside", (FreeholdPostgres,), {"unfinished": FreeholdLimited.unfinished}
    )
    with database.bench.working(FreeholdClaimers, database.url, CLAIMER_PROCESSES) as claimers:
        claimers.until(lambda found: sum(each.jobs for each in found) >= LIMIT, 60.0)
        yield


def _payload(kib: int) -> Fill:
    @contextlib.contextmanager
    def fill(database: CaseDatabase) -> Iterator[None]:
        rng = random.Random(kib)  # repeated bytes would be compressed
        args = _args(rng.randbytes(kib * 512).hex())
        database.new_job = lambda _: NewJob(task=TASK, args=args)
        yield

    return fill


CASES: dict[str, Fill] = {
    "finished": _finished,
    "scheduled": _scheduled,
    "held snapshot": _held_snapshot,
    "lanes": _lanes,
    "behind a failed head": _behind_a_failed_head,
    "lanes beside a failed head": _lanes_beside_a_failed_head,
    "beside a limit": _beside_a_limit,
    "beside claimers of a limit": _beside_claimers_of_a_limit,
}
PAYLOADS: dict[str, Fill] = {
    "payload 1 KiB": _payload(1),
    "payload 16 KiB": _payload(16),
}


def _tenants(bench: Bench, sizes: Sizes) -> dict[str, Any]:
    """The same number of jobs, spread over tenants with a schema each."""
    url = bench.fresh_store(FreeholdPostgres)
    names = _create_tenants(url, sizes.tenants, sizes.jobs)
    unfinished = " + ".join(
        f"(select count(*) from freehold_t_{name}.job where stage <> {STAGE_SQL['scheduled']})"
        for name in names
    )
    contender = type("Tenants", (FreeholdTenants,), {"unfinished": f"select {unfinished}"})
    return drain(bench, contender, url, sizes.jobs)


def _idle(bench: Bench, sizes: Sizes) -> dict[str, Any]:
    """The statements of idle workers: some processes, each with a worker for every tenant."""
    url = bench.fresh_store(FreeholdPostgres)
    tenants = max(1, sizes.workers // IDLE_PROCESSES)
    _create_tenants(url, tenants, tenants)
    with bench.working(FreeholdTenants, url, IDLE_PROCESSES) as workers:
        workers.until(lambda found: sum(each.jobs for each in found) >= tenants, 300.0)
        time.sleep(sizes.seconds + tenants * SETTLE_SECONDS)
        before = _transactions(bench, url)
        time.sleep(sizes.seconds)
        after = _transactions(bench, url)
    return {
        "workers": tenants * IDLE_PROCESSES,
        "processes": IDLE_PROCESSES,
        "statements_per_second": (after - before) / sizes.seconds,
    }


def _create_tenants(url: str, tenants: int, jobs: int) -> list[str]:
    """Create tenants that have ``jobs`` jobs together; returns their names."""
    names = [f"t{number}" for number in range(tenants)]
    with contextlib.closing(Freehold(url)) as app:
        for number, name in enumerate(names):
            app.tenants.create(name)
            count = jobs * (number + 1) // tenants - jobs * number // tenants
            app.tenant(name).enqueue_many([NewJob(task=TASK, args=_args())] * count)
            app.tenant(name).close()
    return names


def _transactions(bench: Bench, url: str) -> int:
    query = "select xact_commit + xact_rollback from pg_stat_database where datname = "
    return bench.server.count(url, f"{query} current_database()")
