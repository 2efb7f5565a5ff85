"""Measures two programs in alternating pairs, and this tree against a copy of itself as control.

A pair takes each measurement of program A and program B in the order A B B A, and the next pair in
the order B A A B, so that a drift of the machine favours neither. Each measurement has a fresh
database on the same server, starts after a checkpoint, and has a fixed number of jobs.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from bench import machine
from bench.against import verdict
from bench.against.checkout import Checkout, copy_harness, other, this_tree
from bench.fleet import MeasurementFailed, Workers, run
from bench.server import Counters, Server
from bench.statements import StatementStatistics

#: Autovacuum and timed checkpoints would fall into some measurements and not into others.
SERVER_SETTINGS: Mapping[str, str | int] = {
    "shared_preload_libraries": "pg_stat_statements",
    "autovacuum": "off",
    "checkpoint_timeout": "1h",
    "max_wal_size": "8GB",
}
T = TypeVar("T")
DRAIN_SECONDS = 180.0
FINISH_SECONDS = 30.0


@dataclass(frozen=True)
class Sizes:
    """The sizes of a run; warm-up jobs come on top."""

    pairs: int = 10
    jobs: int = 60_000
    warm_up_jobs: int = 5_000
    single_jobs: int = 5_000
    single_warm_up_jobs: int = 200
    #: 2: A B B A in each pair; 1: A B.
    repeats: int = 2


QUICK = Sizes(1, 300, 50, 50, 5, 1)


def compare(
    server: Server,
    folder: Path,
    source: str,
    python: Path | None,
    sizes: Sizes,
    out: Path,
    details: Mapping[str, Any],
    session: str | None = None,
) -> dict[str, Any]:
    """Returns the document of the run; ``out`` has it after each round already. ``session``: the
    kind of sessions that all programs use."""
    harness = copy_harness(folder)
    this, copy = (
        replace(this_tree(name, folder, harness), session=session) for name in ("this", "copy")
    )
    with other(source, python, folder, harness) as found:
        against = replace(found, session=session)
        comparison = Comparison(server, folder, sizes)
        programs = {each.name: each.describe() for each in (this, against, copy)}
        for program in (this, against, copy):
            comparison.install(program)
        document: dict[str, Any] = {
            "name": "against",
            **machine.describe(),
            **details,
            "programs": programs,
            "server": server.describe(),
            "sizes": asdict(sizes),
            "load_average": [machine.load_average()],
            "pairs": [],
            "control": [],
            "failures": [],
        }
        for number in range(sizes.pairs):
            _measure_round(comparison, number, this, against, copy, document)
            document |= verdict.judge(document)
            out.write_text(json.dumps(document, indent=1) + "\n")
            if not document["pairs"]:
                break  # the others would fail too
    return document


def _measure_round(
    comparison: Comparison,
    number: int,
    this: Checkout,
    against: Checkout,
    copy: Checkout,
    document: dict[str, Any],
) -> None:
    """One pair and one control pair; neither counts if one of its measurements fails."""
    began = time.monotonic()
    pairs = {"pairs": (against, this), "control": (copy, this)}
    try:
        figures = {
            kind: _measure_pair(comparison, _in_turn(pairs[kind], number))
            for kind in _in_turn(pairs, number)
        }
    except MeasurementFailed as error:
        document["failures"].append({"pair": number, "error": str(error)})
        sys.stderr.write(f"pair {number + 1}: {error}\n")
        return
    for kind in pairs:
        document[kind].append(figures[kind])
    document["load_average"].append(machine.load_average())
    seconds = time.monotonic() - began
    sys.stderr.write(f"pair {number + 1} and its control  {seconds:5.1f} s\n")


def _measure_pair(comparison: Comparison, pair: list[Checkout]) -> dict[str, list[dict[str, Any]]]:
    """The figures of each program, once for each repeat. Measurements that are compared directly
    follow each other."""
    repeats = range(comparison.sizes.repeats)
    figures: dict[str, list[dict[str, Any]]] = {
        program.name: [{} for _ in repeats] for program in pair
    }
    for measure in comparison.measures():
        for repeat in repeats:
            for program in _in_turn(pair, repeat):
                figures[program.name][repeat] |= measure(program)
    return figures


def _in_turn(items: Iterable[T], number: int) -> list[T]:
    return list(items) if number % 2 == 0 else list(items)[::-1]


class Comparison:
    """The measurements of one program at a time."""

    def __init__(self, server: Server, folder: Path, sizes: Sizes) -> None:
        self._server = server
        self._folder = folder
        self.sizes = sizes
        self._serial = 0

    def measures(self) -> tuple[Callable[[Checkout], dict[str, Any]], ...]:
        return self._bulk_and_drain, self._awaited, self._blocking

    def install(self, program: Checkout) -> None:
        url = self._server.recreate(f"against_{program.name}_new")
        run(program.command("install", url, 0, 0, "-"))
        if not StatementStatistics(self._server, url).is_available:
            raise MeasurementFailed("the server needs shared_preload_libraries=pg_stat_statements")
        self._server.vacuum_catalogs(url)
        self._server.wait_for_sessions(url)

    def _fresh_database(self, program: Checkout) -> str:
        name = f"against_{program.name}"
        return self._server.recreate(name, template=f"{name}_new")

    def _awaited(self, program: Checkout) -> dict[str, Any]:
        return {"awaited": self._one_by_one(program, "enqueue")}

    def _blocking(self, program: Checkout) -> dict[str, Any]:
        return {"blocking": self._one_by_one(program, "enqueue-blocking")}

    def _one_by_one(self, program: Checkout, role: str) -> dict[str, float]:
        jobs, warm_up_jobs = self.sizes.single_jobs, self.sizes.single_warm_up_jobs
        return self._enqueue(program, role, self._fresh_database(program), jobs, warm_up_jobs)

    def _enqueue(
        self, program: Checkout, role: str, url: str, jobs: int, warm_up_jobs: int
    ) -> dict[str, float]:
        costs = _Costs(self._server, url, jobs + warm_up_jobs)
        produced = run(program.command(role, url, jobs, warm_up_jobs, "-"))
        return {"rate": produced["rate"], **costs.per_job()}

    def _bulk_and_drain(self, program: Checkout) -> dict[str, Any]:
        url = self._fresh_database(program)
        jobs, warm_up_jobs = self.sizes.jobs, self.sizes.warm_up_jobs
        bulk = self._enqueue(program, "enqueue-bulk", url, jobs, warm_up_jobs)
        with self._server.connect(url) as connection:
            connection.execute("vacuum analyze")
        self._server.checkpoint()
        return {"bulk": bulk, "drain": self._drain(program, url)}

    def _drain(self, program: Checkout, url: str) -> dict[str, float]:
        """From the first start after the warm-up until the server has finished the last job."""
        timed = self.sizes.jobs
        jobs = timed + self.sizes.warm_up_jobs
        costs = _Costs(self._server, url, jobs)
        self._serial += 1
        base = self._folder / f"w{self._serial}"
        command = program.command("work", url, 0, self.sizes.warm_up_jobs, str(base))
        workers = Workers(command, base)
        try:
            [count] = workers.until(lambda found: sum(c.jobs for c in found) >= jobs, DRAIN_SECONDS)
            self._wait_until_finished(program, url, jobs)
        finally:
            workers.stop()
        costs_per_job = costs.per_job()  # before the queries below, which would add to them
        return {
            "rate": timed / (self._last_finish(program, url, jobs) - count.first),
            "cpu_us": (count.cpu_last - count.cpu_first) / timed * 1e6,
            **costs_per_job,
        }

    def _wait_until_finished(self, program: Checkout, url: str, jobs: int) -> None:
        deadline = time.monotonic() + FINISH_SECONDS
        query = f"select count(*) from {program.package}.job"
        while left := self._server.count(url, query):
            if time.monotonic() > deadline:
                raise MeasurementFailed(f"{program.name}: {left} of {jobs} jobs did not finish")
            time.sleep(0.02)

    def _last_finish(self, program: Checkout, url: str, jobs: int) -> float:
        """The time at which the server finished the last job; all of them must be in history."""
        history = f"{program.package}.history"
        finished = self._server.count(url, f"select count(*) from {history}")
        if finished != jobs:
            raise MeasurementFailed(f"{program.name}: {finished} of {jobs} jobs are in history")
        return self._server.number(
            url, f"select extract(epoch from max(finished_at)) from {history}"
        )


class _Costs:
    """The costs to the server from now on, for each of ``jobs`` jobs.

    WAL is that of the server, because commits are part of no statement. Buffers and statements are
    from pg_stat_statements, which leaves out the queries of this harness."""

    def __init__(self, server: Server, url: str, jobs: int) -> None:
        self._server = server
        self._url = url
        self._jobs = jobs
        self._statements = StatementStatistics(server, url)
        self._before: Counters = server.counters(url)

    def per_job(self) -> dict[str, float]:
        wal = self._server.counters(self._url).per_job(self._before, self._jobs)["wal_bytes"]
        statements = self._statements.averages(self._jobs)["statements"]
        return {
            "wal_bytes": wal,
            "buffers": statements["buffers"],
            "statements": statements["calls"],
        }
