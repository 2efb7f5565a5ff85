"""The measurements of one contender in one round. Each starts with a freshly installed database."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.contender import Contender
from bench.contenders.freehold import unfinished_in_file
from bench.counting import Count
from bench.fleet import Fleet, MeasurementFailed, Workers
from bench.server import Server

DRAIN_SECONDS = 180.0
FINISH_SECONDS = 30.0
WARM_UP_JOBS = 20


class Bench:
    """A server, a folder for files, and the processes."""

    def __init__(self, server: Server, folder: Path, node: Path | None) -> None:
        self.server = server
        self.folder = folder
        self.fleet = Fleet(folder, node)
        self._installed: set[str] = set()

    def fresh_store(self, contender: type[Contender]) -> str:
        """The URL of an empty store: on PostgreSQL a copy of a database installed once."""
        if not contender.on_postgres:
            for path in self.folder.glob(f"{contender.name}.db*"):
                path.unlink()
            url = str(self.folder / f"{contender.name}.db")
            self.fleet.produce(contender, "install", url)
            return url
        name = contender.name.replace("-", "_")
        template = f"{name}_new"
        if contender.name not in self._installed:
            self.fleet.produce(contender, "install", self.server.recreate(template))
            self.server.wait_for_sessions(self.server.database(template))
            self._installed.add(contender.name)
        return self.server.recreate(name, template=template)

    def unfinished(self, contender: type[Contender], url: str) -> int:
        if not contender.on_postgres:
            return unfinished_in_file(url)
        return self.server.count(url, contender.unfinished)

    @contextmanager
    def working(
        self, contender: type[Contender], url: str, processes: int = 1
    ) -> Iterator[Workers]:
        workers = self.fleet.workers(contender, url, processes)
        try:
            yield workers
        finally:
            workers.stop()


def one_by_one(bench: Bench, contender: type[Contender], seconds: float) -> dict[str, Any]:
    """Each job is awaited before the next."""
    url = bench.fresh_store(contender)
    return {"rate": bench.fleet.produce(contender, "enqueue", url, seconds)["rate"]}


def blocking(bench: Bench, contender: type[Contender], seconds: float) -> dict[str, Any]:
    """The same by a blocking call; empty if the contender has none."""
    if contender.open_blocking is Contender.open_blocking:
        return {}
    url = bench.fresh_store(contender)
    return {"rate": bench.fleet.produce(contender, "enqueue-blocking", url, seconds)["rate"]}


def mixed_bulk(bench: Bench, contender: type[Contender], jobs: int) -> dict[str, Any]:
    """Bulk calls with jobs that differ."""
    filled = bench.fleet.produce(contender, "enqueue-mixed", bench.fresh_store(contender), jobs)
    return {name: filled[name] for name in ("rate", "cpu_us")}


def fill_and_drain(
    bench: Bench,
    contender: type[Contender],
    jobs: int,
    processes: int = 1,
    role: str = "enqueue-bulk",
) -> dict[str, Any]:
    """Enqueue in bulk, then drain; both are measured."""
    url = bench.fresh_store(contender)
    filled = bench.fleet.produce(contender, role, url, jobs)
    if contender.on_postgres:
        with bench.server.connect(url) as connection:
            connection.execute("vacuum analyze")
    return {"bulk": filled["rate"], **drain(bench, contender, url, int(filled["jobs"]), processes)}


def drain(
    bench: Bench,
    contender: type[Contender],
    url: str,
    jobs: int,
    processes: int = 1,
    seconds: float = DRAIN_SECONDS,
) -> dict[str, Any]:
    """From the start of the first job until the store counts none as unfinished. The start of the
    workers is not part of it."""
    before = bench.server.counters(url) if contender.on_postgres else None
    with bench.working(contender, url, processes) as workers:
        workers.until(lambda found: sum(each.jobs for each in found) >= jobs, seconds)
        deadline = time.monotonic() + FINISH_SECONDS
        while (left := bench.unfinished(contender, url)) > 0 and time.monotonic() < deadline:
            time.sleep(0.02)
        ended = time.time()
        counts = workers.counts()
    if left > 0:
        raise MeasurementFailed(f"{contender.name}: {left} of {jobs} jobs did not finish")
    began = min(each.first for each in counts)
    cpu = sum(each.cpu_last - each.cpu_first for each in counts)
    figures = {
        "rate": jobs / (ended - began),
        "jobs": jobs,
        "unfinished": left,
        "started": sum(each.jobs for each in counts),
        "cpu_us": round(cpu / jobs * 1e6, 1),
    }
    if before is not None:
        figures |= bench.server.counters(url).per_job(before, jobs)
    return figures


def latency(bench: Bench, contender: type[Contender], jobs: int) -> dict[str, Any]:
    """From just before the enqueue to the start of the handler; 20 ms apart, one idle worker."""
    url = bench.fresh_store(contender)
    with bench.working(contender, url) as workers:
        bench.fleet.produce(contender, "enqueue-spaced", url, WARM_UP_JOBS)
        workers.until(lambda found: _waited(found) >= WARM_UP_JOBS, 60.0)
        bench.fleet.produce(contender, "enqueue-spaced", url, jobs)
        counts = workers.until(lambda found: _waited(found) >= jobs + WARM_UP_JOBS, 60.0)
    waited = sorted(each * 1000 for count in counts for each in count.waited[WARM_UP_JOBS:])
    cuts = statistics.quantiles(waited, n=100)
    return {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "jobs": len(waited)}


def _waited(counts: list[Count]) -> int:
    return sum(len(each.waited) for each in counts)
