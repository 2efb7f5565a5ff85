"""Whether the cost of a job stays the same while everything around it grows.

Each case is the clean one with a single difference: the same number of plain jobs is drained by
one process, from a database that also holds a history, a backlog, a snapshot, lanes, a limit.
Buffers, WAL and transactions are counted by the server, and hardly depend on the weather of
the machine; rates do.
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

from bench.measures import Bench, emptied
from bench.rounds import Run, Work, interleaved
from bench.server import BYSTANDER
from bench.sides.freehold import (
    LIMITED_QUEUE,
    SLOW_TASK,
    TASK,
    FreeholdClaimers,
    FreeholdLimited,
    FreeholdPostgres,
    FreeholdTenants,
)
from bench.sides.side import BULK, Side
from bench.statements import Statements
from freehold import Freehold
from freehold.model.job import NewJob
from freehold.model.limit import Limit

LIMIT = 7
BLOCKED = "blocked"
#: By way of indexes: to count a million others takes longer than to end the last jobs.
_LEFT_BUT_BLOCKED = f"""
    select (select count(*) from freehold.job where coalesce(stage in ('r','R'), false))
         + (select count(*) from freehold.job where stage = 'h')
         + (select count(*) from freehold.job
            where stage in ('r','f','q') and target > '{BLOCKED}')
"""
#: Slots, in so many processes.
CLAIMERS, CLAIMER_PROCESSES = 64, 4


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

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
#: For each tenant, until its first round of upkeep is over.
SETTLE_SECONDS = 0.1


def measure(
    bench: Bench, sizes: Sizes, only: list[str], keep: Path | None, *, wide: bool = False
) -> Run:
    """``wide``: what grows are payloads and fleets, instead of what stands in the store."""
    fills = {"clean": _clean} | (PAYLOADS if wide else CASES)
    cases: dict[str, Work] = {
        name: functools.partial(_case, bench, sizes, fill) for name, fill in fills.items()
    }
    if wide:
        for processes in (1, 2, 4, 8):
            work = functools.partial(_case, bench, sizes, _clean, processes)
            cases[f"{processes} process{'es' if processes > 1 else ''}"] = work
        cases[f"{sizes.tenants} tenants"] = functools.partial(_tenants, bench, sizes)
        cases["idle workers"] = functools.partial(_idle, bench, sizes)
    chosen = {name: work for name, work in cases.items() if not only or name in only}
    told = {
        "server": bench.server.described(),
        "round_count": sizes.rounds,
        "sizes": {name: getattr(sizes, name) for name in sizes.__dataclass_fields__},
    }
    run = Run("growth", told)
    interleaved(run, chosen, sizes.rounds, keep)
    return run


#: Fills a fresh database; what it opens stays open while the jobs are drained.
Fill = Callable[["Filled"], contextlib.AbstractContextManager[None]]


class Filled:
    """The database of one case, before it is drained."""

    def __init__(self, bench: Bench, url: str, sizes: Sizes) -> None:
        self.bench = bench
        self.url = url
        self.sizes = sizes
        self.side: type[Side] = FreeholdPostgres
        self.shape: Callable[[int], NewJob] = lambda number: NewJob(task=TASK, args=_args())

    def sql(self, text: str) -> None:
        with self.bench.server.connect(self.url) as connection:
            connection.execute(text.encode())

    def enqueue(self, count: int, shape: Callable[[int], NewJob]) -> None:
        with contextlib.closing(Freehold(self.url)) as app:
            for start in range(0, count, BULK):
                app.enqueue_many([shape(n) for n in range(start, min(start + BULK, count))])


def _args(more: str = "") -> bytes:
    return b'{"sent": 0.0, "more": "%s"}' % more.encode() if more else b'{"sent": 0.0}'


def _case(bench: Bench, sizes: Sizes, fill: Fill, processes: int = 1) -> dict[str, Any]:
    filled = Filled(bench, bench.fresh(FreeholdPostgres), sizes)
    with fill(filled):
        filled.enqueue(sizes.jobs, filled.shape)
        filled.sql("vacuum analyze")
        bench.server.write_out()
        statements = Statements(bench.server, filled.url)
        found = emptied(bench, filled.side, filled.url, sizes.jobs, processes)
        return found | statements.counted(sizes.jobs)


@contextlib.contextmanager
def _clean(filled: Filled) -> Iterator[None]:
    yield


@contextlib.contextmanager
def _finished(filled: Filled) -> Iterator[None]:
    filled.sql(f"""
        insert into freehold.history (id, created_at, finished_at, priority, attempt,
            max_attempts, lost, state, queue, task, args)
        select -g, now(), now(), 0, 1, 5, 0, 'succeeded', 'default', '{TASK}', '{{"sent": 0.0}}'
        from generate_series(1, {filled.sizes.finished}) g""")
    yield


@contextlib.contextmanager
def _scheduled(filled: Filled) -> Iterator[None]:
    filled.enqueue(
        filled.sizes.scheduled, lambda _: NewJob(task=TASK, args=_args(), delay_seconds=86_400.0)
    )
    yield


@contextlib.contextmanager
def _held_snapshot(filled: Filled) -> Iterator[None]:
    """A transaction that began before them: no row that dies meanwhile can be removed."""
    with filled.bench.server.connect(filled.url) as connection:
        connection.execute(f"set application_name = '{BYSTANDER}'".encode())
        connection.execute("begin isolation level repeatable read")
        connection.execute("select count(*) from pg_class")
        yield
        connection.execute("rollback")


@contextlib.contextmanager
def _lanes(filled: Filled) -> Iterator[None]:
    filled.shape = lambda n: NewJob(
        task=TASK, args=_args(), target=f"lane {n % filled.sizes.lanes}"
    )
    yield


@contextlib.contextmanager
def _lanes_beside_a_failed_head(filled: Filled) -> Iterator[None]:
    with _lanes(filled), _behind_a_failed_head(filled):
        yield


@contextlib.contextmanager
def _behind_a_failed_head(filled: Filled) -> Iterator[None]:
    """One lane whose first job has failed, and blocks all others of it."""
    filled.sql(f"""
        insert into freehold.job (id, created_at, priority, max_attempts, stage, queue, task,
            target, args)
        select nextval('freehold.job_id'), now(), 0, 5,
            (case when g = 0 then 'x' else 'f' end)::"char", 'default', '{TASK}',
            '{BLOCKED}', '{{"sent": 0.0}}'
        from generate_series(0, {filled.sizes.behind}) g""")
    filled.side = type("Behind", (FreeholdPostgres,), {"left": _LEFT_BUT_BLOCKED})
    yield


@contextlib.contextmanager
def _beside_a_limit(filled: Filled) -> Iterator[None]:
    """Another queue that may run a few at once, with more waiting than can be run meanwhile."""
    filled.side = FreeholdLimited
    with contextlib.closing(Freehold(filled.url)) as app:
        app.operate.set_queue_limit(LIMITED_QUEUE, Limit(max_leases=LIMIT))
    filled.enqueue(filled.sizes.jobs, lambda _: NewJob(task=SLOW_TASK, queue=LIMITED_QUEUE))
    yield


@contextlib.contextmanager
def _beside_claimers_of_a_limit(filled: Filled) -> Iterator[None]:
    """Other processes want many more of a queue than it may run at once."""
    with contextlib.closing(Freehold(filled.url)) as app:
        app.operate.set_queue_limit(LIMITED_QUEUE, Limit(max_leases=LIMIT))
    filled.enqueue(CLAIMERS * 10, lambda _: NewJob(task=SLOW_TASK, queue=LIMITED_QUEUE))
    filled.side = type("Beside", (FreeholdPostgres,), {"left": FreeholdLimited.left})
    with filled.bench.working(FreeholdClaimers, filled.url, CLAIMER_PROCESSES) as claimers:
        claimers.until(lambda found: sum(each.jobs for each in found) >= LIMIT, 60.0)
        yield


def _payload(kib: int) -> Fill:
    @contextlib.contextmanager
    def fill(filled: Filled) -> Iterator[None]:
        chance = random.Random(kib)  # what repeats would be compressed away
        args = _args(chance.randbytes(kib * 512).hex())
        filled.shape = lambda _: NewJob(task=TASK, args=args)
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
    """The same number of jobs, spread over tenants with schemas of their own."""
    url = bench.fresh(FreeholdPostgres)
    names = _created(url, sizes.tenants, sizes.jobs)
    left = " + ".join(
        f"(select count(*) from freehold_t_{name}.job where stage <> 'w')" for name in names
    )
    side = type("Tenants", (FreeholdTenants,), {"left": f"select {left}"})
    return emptied(bench, side, url, sizes.jobs)


def _idle(bench: Bench, sizes: Sizes) -> dict[str, Any]:
    """What workers ask for while there is nothing to do: some processes, each with a worker for
    every tenant. (A worker of its own is a process with connections of its own.)"""
    url = bench.fresh(FreeholdPostgres)
    tenants = max(1, sizes.workers // IDLE_PROCESSES)
    _created(url, tenants, tenants)
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


def _created(url: str, tenants: int, jobs: int) -> list[str]:
    """Tenants with so many jobs, all together."""
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
