"""The measurements of one side in one round. Each begins with a database as it was installed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.fleet import Fleet, Trouble, Workers
from bench.server import Server
from bench.sides.freehold import unfinished_in_file
from bench.sides.side import Side

DRAIN_SECONDS = 180.0
FINISH_SECONDS = 30.0
WARM_JOBS = 20


class Bench:
    """A server, a place for files, and the processes."""

    def __init__(self, server: Server, folder: Path, node: Path | None) -> None:
        self.server = server
        self.folder = folder
        self.fleet = Fleet(folder, node)
        self._installed: set[str] = set()

    def fresh(self, side: type[Side]) -> str:
        """The side's store, empty: a copy of one that was installed once."""
        if not side.on_postgres:
            for path in self.folder.glob(f"{side.name}.db*"):
                path.unlink()
            url = str(self.folder / f"{side.name}.db")
            self.fleet.ask(side, "make", url)
            return url
        name = side.name.replace("-", "_")
        if side.name not in self._installed:
            self.fleet.ask(side, "make", self.server.renew(f"{name}_new"))
            self.server.counters(self.server.database(f"{name}_new"))  # waits for its sessions
            self._installed.add(side.name)
        return self.server.renew(name, template=f"{name}_new")

    def left(self, side: type[Side], url: str) -> int:
        if not side.on_postgres:
            return unfinished_in_file(url)
        return self.server.count(url, side.left)

    @contextmanager
    def working(self, side: type[Side], url: str, processes: int = 1) -> Iterator[Workers]:
        workers = self.fleet.workers(side, url, processes)
        try:
            yield workers
        finally:
            workers.stop()


def one_by_one(bench: Bench, side: type[Side], seconds: float) -> dict[str, Any]:
    """Each awaited before the next."""
    url = bench.fresh(side)
    return {"rate": bench.fleet.ask(side, "one", url, seconds)["rate"]}


def blocking(bench: Bench, side: type[Side], seconds: float) -> dict[str, Any]:
    """The same from a caller that blocks; nothing, where there is no such call."""
    if side.opened is Side.opened:
        return {}
    found = bench.fleet.ask(side, "block", bench.fresh(side), seconds)
    return {"rate": found["rate"]}


def drain(bench: Bench, side: type[Side], jobs: int, processes: int = 1) -> dict[str, Any]:
    """Fill it by bulk, then empty it; both are measured."""
    url = bench.fresh(side)
    filled = bench.fleet.ask(side, "many", url, jobs)
    if side.on_postgres:
        with bench.server.connect(url) as connection:
            connection.execute("vacuum analyze")
    return {"bulk": filled["rate"], **emptied(bench, side, url, int(filled["jobs"]), processes)}


def emptied(
    bench: Bench, side: type[Side], url: str, jobs: int, processes: int = 1
) -> dict[str, Any]:
    """Until the store says that none of them is left: from the first job's start to its last
    one's end. Starting the workers is not part of it."""
    before = bench.server.counters(url) if side.on_postgres else None
    workers = bench.fleet.workers(side, url, processes)
    try:
        workers.until(lambda found: sum(each.jobs for each in found) >= jobs, DRAIN_SECONDS)
        deadline = time.monotonic() + FINISH_SECONDS
        while (left := bench.left(side, url)) > 0 and time.monotonic() < deadline:
            time.sleep(0.02)
        ended = time.time()
        found = workers.counts()
    finally:
        workers.stop()
    if left > 0:
        raise Trouble(f"{side.name}: {left} of {jobs} jobs did not finish")
    began = min(each.first for each in found)
    cpu = sum(each.cpu_last - each.cpu_first for each in found)
    answer = {
        "rate": jobs / (ended - began),
        "jobs": jobs,
        "unfinished": left,
        "started": sum(each.jobs for each in found),
        "cpu_us": round(cpu / jobs * 1e6, 1),
    }
    if before is not None:
        answer |= bench.server.counters(url).per_job(before, jobs)
    return answer


def latency(bench: Bench, side: type[Side], jobs: int) -> dict[str, Any]:
    """From just before the enqueue to the start of the handler, 20 ms apart, one idle worker."""
    url = bench.fresh(side)
    with bench.working(side, url) as workers:
        bench.fleet.ask(side, "spaced", url, WARM_JOBS)
        workers.until(lambda found: sum(len(each.waited) for each in found) >= WARM_JOBS, 60.0)
        bench.fleet.ask(side, "spaced", url, jobs)
        wanted = jobs + WARM_JOBS
        found = workers.until(lambda now: sum(len(each.waited) for each in now) >= wanted, 60.0)
    waited = sorted(each * 1000 for count in found for each in count.waited[WARM_JOBS:])
    cuts = statistics.quantiles(waited, n=100)
    return {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "jobs": len(waited)}
