"""The cost of many tenants in one process, and the effect of one tenant on the others.

    python bench/tenants.py idle     [--url URL] [--tenants 200] [--seconds 30]
    python bench/tenants.py latency  [--url URL] [--others 20] [--jobs 400] [--flood-ms 20]
    python bench/tenants.py shares   [--url URL] [--jobs 4500]

Each prints one JSON document. Without --url a PostgreSQL of its own is started.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg

from freehold import Freehold
from freehold.lab.devpostgres import DevPostgres
from freehold.model.tenant import TenantState

HERE = Path(__file__).parent
RECORD = "FREEHOLD_BENCH_RECORD"
#: Quiet and flood alternate, so that other load of the machine affects both.
TURNS = 8

app = Freehold(os.environ.get("FREEHOLD_URL", "sqlite://:memory:"))


@app.task(name="bench.job")
async def job(tenant: str, sent: float, seconds: float = 0.0) -> None:
    import asyncio

    line = json.dumps([tenant, sent, time.monotonic(), os.getpid()]).encode() + b"\n"
    file = os.open(os.environ[RECORD], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line)
    finally:
        os.close(file)
    await asyncio.sleep(seconds)


class Bench:
    """Tenants on one server, hosts that serve them, and a record of the jobs that started."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = app.url = url
        self.record = folder / "record"
        self.folder = folder
        self._hosts: list[subprocess.Popen[bytes]] = []
        app.migrate()

    def create_tenant(self, name: str, **fields: Any) -> None:
        app.tenants.create(name, **fields)

    def host(self, *arguments: str) -> None:
        log = (self.folder / f"host-{len(self._hosts)}.log").open("wb")
        command = [
            sys.executable,
            "-m",
            "freehold",
            "worker",
            "--tenants",
            "all",
            "--app",
            "tenants:app",
            *arguments,
        ]
        env = {**os.environ, "FREEHOLD_URL": self.url, RECORD: str(self.record)}
        self._hosts.append(subprocess.Popen(command, cwd=HERE, env=env, stdout=log, stderr=log))

    def lines(self) -> list[tuple[str, float, float, int]]:
        if not self.record.exists():
            return []
        return [tuple(json.loads(line)) for line in self.record.read_text().splitlines()]

    def until(self, condition: Callable[[], bool], seconds: float = 120.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                logs = [path.read_text()[-2000:] for path in self.folder.glob("*.log")]
                raise SystemExit("\n".join([f"timed out after {seconds:g} s", *logs]))
            time.sleep(0.02)

    def transactions(self) -> int:
        """Transactions of all sessions: one for each statement that is not in a batch."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            row = connection.execute(
                "select xact_commit + xact_rollback from pg_stat_database "
                "where datname = current_database()"
            ).fetchone()
        assert row is not None
        return int(row[0])

    def close(self) -> None:
        for host in self._hosts:
            host.terminate()
        for host in self._hosts:
            host.wait(60)
        app.close()


def idle(bench: Bench, tenants: int, seconds: float) -> dict[str, Any]:
    """Statements per second of one process whose tenants are all idle."""
    for number in range(tenants):
        bench.create_tenant(f"t{number}")
    app.close()
    bench.host()
    app.tenant("t0").enqueue_many([job.prepare("t0", 0.0)])
    bench.until(lambda: len(bench.lines()) == 1)
    app.close()
    time.sleep(tenants * 0.05 + 10.0)  # the first maintenance is over, and t0 is idle again
    cpu_before, before = _cpu(bench), bench.transactions()
    time.sleep(seconds)
    after, cpu_after = bench.transactions(), _cpu(bench)
    return {
        "tenants": tenants,
        "statements_per_second": round((after - before - 1) / seconds, 2),
        "cpu_share_of_the_host": round((cpu_after - cpu_before) / seconds, 4),
    }


def _cpu(bench: Bench) -> float:
    fields = Path(f"/proc/{bench._hosts[0].pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def latency(
    bench: Bench, others: int, jobs: int, flood_ms: float, spread: float, max_slots: int | None
) -> dict[str, Any]:
    """From enqueue to start, of tenants beside a flooded and a broken one."""
    names = [f"t{number}" for number in range(others)]
    for name in [*names, "broken"]:
        bench.create_tenant(name)
    bench.create_tenant("flooded", max_slots=max_slots)
    bench.host("--concurrency", "10")
    rng = random.Random(1)
    for name in names:  # so that all connections and prepared statements exist
        app.tenant(name).enqueue_many([job.prepare(name, 0.0)])
    bench.until(lambda: len(bench.lines()) == others)
    measured: dict[str, list[float]] = {"quiet": [], "flood": []}
    flooded = app.tenant("flooded")
    flooded.operator.pause_queue("default", "bench")
    need = int(jobs * 0.05 * 10 / (flood_ms / 1000)) + 2000
    for start in range(0, need, 1000):
        count = min(1000, need - start)
        spans = [flood_ms / 1000 * rng.uniform(1 - spread, 1 + spread) for _ in range(count)]
        flooded.enqueue_many([job.prepare("flooded", 0.0, span) for span in spans])
    for turn in range(2 * TURNS):
        name = ("quiet", "flood")[turn % 2]
        if name == "flood":
            flooded.operator.resume_queue("default")
            if turn == 1:
                with psycopg.connect(bench.url, autocommit=True) as connection:
                    connection.execute("drop table freehold_t_broken.job cascade")
                bench.until(lambda: app.tenants.get("broken").state is TenantState.DEGRADED)
            bench.until(functools.partial(_more_than, bench, len(bench.lines()) + 100))
        measured[name] += _send(bench, names, jobs // TURNS, rng)
        if name == "flood":
            last = bench.lines()[-200:]
            assert any(line[0] == "flooded" for line in last), "the flood has run dry"
            flooded.operator.pause_queue("default", "bench")
            time.sleep(0.5)
    result: dict[str, Any] = {
        "others": others,
        "flood_ms": flood_ms,
        "spread": spread,
        "max_slots": max_slots,
    }
    for name, found in measured.items():
        result[name] = {
            "jobs": len(found),
            "median_ms": round(statistics.median(found) * 1000, 2),
            "p95_ms": round(statistics.quantiles(found, n=20)[18] * 1000, 2),
        }
    for figure in ("median_ms", "p95_ms"):
        result[f"ratio_{figure}"] = round(result["flood"][figure] / result["quiet"][figure], 2)
    return result


def _more_than(bench: Bench, lines: int) -> bool:
    return len(bench.lines()) > lines


def _send(bench: Bench, names: list[str], count: int, rng: random.Random) -> list[float]:
    sent: set[float] = set()
    for _ in range(count):
        name, at = rng.choice(names), time.monotonic()
        sent.add(at)
        app.tenant(name).enqueue_many([job.prepare(name, at)])
        time.sleep(rng.uniform(0.0, 0.04))
    bench.until(lambda: len({line[1] for line in bench.lines()} & sent) == count)
    return [began - at for _, at, began, _ in bench.lines() if at in sent]


def shares(bench: Bench, jobs: int) -> dict[str, Any]:
    """Weights 5:3:1, two processes: counts starts while every tenant still has jobs."""
    weights = {"five": 5.0, "three": 3.0, "one": 1.0}
    for name, weight in weights.items():
        bench.create_tenant(name, weight=weight)
        for start in range(0, jobs, 1000):
            count = min(1000, jobs - start)
            app.tenant(name).enqueue_many([job.prepare(name, 0.0, 0.02)] * count)
    began = time.monotonic()
    for _ in range(2):
        bench.host("--concurrency", "10")
    bench.until(lambda: len(bench.lines()) >= jobs)
    seconds = time.monotonic() - began
    starts = sorted(bench.lines(), key=lambda line: line[2])[:jobs]
    counts = Counter(line[0] for line in starts)
    expected = {name: jobs * weight / 9 for name, weight in weights.items()}
    return {
        "starts": jobs,
        "seconds": round(seconds, 1),
        "counts": dict(counts),
        "off_percent": {
            name: round(100 * (counts[name] / expected[name] - 1), 1) for name in weights
        },
    }


@contextlib.contextmanager
def server(url: str | None) -> Iterator[str]:
    if url is not None:
        yield url
        return
    # Autovacuum would add to the transactions that are counted.
    settings: dict[str, str | int] = {"max_connections": 300, "autovacuum": "off"}
    with contextlib.closing(DevPostgres(settings=settings)) as postgres:
        postgres.start()
        yield postgres.url


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=["idle", "latency", "shares"])
    parser.add_argument("--url")
    parser.add_argument("--tenants", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--others", type=int, default=20)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--flood-ms", type=float, default=20.0)
    parser.add_argument(
        "--spread", type=float, default=0.5, help="relative spread of the flood's durations"
    )
    parser.add_argument("--max-slots", type=int)
    arguments = parser.parse_args()
    with server(arguments.url) as url, tempfile.TemporaryDirectory() as folder:
        os.environ[RECORD] = str(Path(folder) / "record")
        bench = Bench(url, Path(folder))
        try:
            if arguments.case == "idle":
                figures = idle(bench, arguments.tenants, arguments.seconds)
            elif arguments.case == "latency":
                jobs = arguments.jobs or 400
                figures = latency(
                    bench,
                    arguments.others,
                    jobs,
                    arguments.flood_ms,
                    arguments.spread,
                    arguments.max_slots,
                )
            else:
                figures = shares(bench, arguments.jobs or 4500)
        finally:
            bench.close()
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
