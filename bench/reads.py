"""The cost of an operator's reads, and of each page, beside many jobs, queues, lanes and workers.

Each read is measured on a connection of its own: the first call (*cold*: plans and catalogue are
not cached by the session), then many more (*warm*). Buffers are those that the server touched for a
warm call; they do not depend on the load of the machine.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

from bench import machine
from bench.pages import PAGES, PageReader
from bench.server import Server
from freehold import Freehold, JobFilter, Operator, State
from freehold.model.worker_info import Heartbeat
from freehold.store.stage_sql import STAGE_NAMES
from freehold.workflow_nodes import Node

Read: TypeAlias = Callable[[Operator], Any]
#: A call to measure, and what ends it.
Opened: TypeAlias = Callable[[], tuple[Callable[[], Any], Callable[[], None]]]


@dataclass(frozen=True)
class Sizes:
    """The sizes of a run. Every 100th finished job has failed, every 100th lane is blocked."""

    finished: int = 2_000_000
    live: int = 500_000
    queues: int = 200
    lanes: int = 20_000
    workers: int = 50
    #: Of one workflow, and members of one batch.
    nodes: int = 500
    members: int = 100_000
    rounds: int = 50


QUICK = Sizes(
    finished=2_000, live=2_000, queues=5, lanes=50, workers=3, nodes=20, members=100, rounds=3
)

_FINISHED = """
insert into freehold.history (id, created_at, leased_at, started_at, finished_at, token, priority,
    attempt, max_attempts, lost_attempts, state, queue, task, finished_by, args, error)
select nextval('freehold.job_id'), now(), now(), now(), now(), i, 0, 1, 5, 0,
    case when i % 100 = 0 then 'failed' else 'succeeded' end, 'q' || i % {queues}, 't' || i % 50,
    'w' || i % {workers}, '{{"n": 1}}', case when i % 100 = 0 then
        '{{"type": "builtins.ValueError", "message": "no account ' || i || '"}}' end::json
from generate_series(1, {count}) i
"""
_LIVE = """
insert into freehold.job (id, created_at, run_at, stage, priority, attempt, max_attempts, queue,
    task, target, lease_owner, lease_token, leased_at, lease_expires_at, args)
select nextval('freehold.job_id'), now(), {run_at}, {stage}, i % 5, 0, 5, 'q' || i % {queues},
    't' || i % 50, {target}, {owner}, {token}, {leased_at}, {expires_at}, '{{"n": 1}}'
from generate_series(1, {count}) i
"""
_WAITING = {
    "run_at": "null::timestamptz",
    "target": "null",
    "owner": "null",
    "token": "null::bigint",
    "leased_at": "null::timestamptz",
    "expires_at": "null::timestamptz",
}
_LEASED_EACH = 10

READS: dict[str, Read] = {
    "counts": lambda operator: operator.counts(1000),
    "queues": lambda operator: operator.queues(),
    "queue": lambda operator: operator.queue("q0"),
    "lanes": lambda operator: operator.lanes(),
    "lane": lambda operator: operator.lane("lane1"),
    "lane's jobs": lambda operator: operator.lane_jobs("lane1"),
    "attempts of an hour": lambda operator: operator.attempts(operator.now() - timedelta(hours=1)),
    "workers": lambda operator: operator.workers(),
    "findings": lambda operator: operator.findings(),
    "failures": lambda operator: operator.failures(),
    "jobs, newest": lambda operator: operator.jobs(JobFilter(), reads=1),
    "jobs, failed": lambda operator: operator.jobs(
        JobFilter(states=frozenset({State.FAILED})), reads=1
    ),
    "jobs, rare filter, one read": lambda operator: operator.jobs(JobFilter(tag="none"), reads=1),
    "jobs, rare filter, 20 reads": lambda operator: operator.jobs(JobFilter(tag="none")),
    "job": lambda operator: operator.show(_newest(operator)[0]),
    "explain": lambda operator: operator.explain(_newest(operator)[0]),
    "explain of 50": lambda operator: operator.explain_many(_newest(operator)),
    "preview of 50": lambda operator: operator.preview("cancel", _newest(operator)),
    "events": lambda operator: operator.events_after(0, 50),
    "audit": lambda operator: operator.audit(),
    "bulk operations": lambda operator: operator.bulk.list(),
}


def _newest(operator: Operator) -> list[int]:
    """A page of jobs, whose cost is part of the reads that begin with it."""
    return [job.id for job in operator.jobs(JobFilter(limit=50), reads=1).jobs]


def run(server: Server, sizes: Sizes, out: Path) -> None:
    url = server.recreate("reads")
    app = Freehold(url)
    app.migrate()
    _fill(server, url, app, sizes)
    newest = _newest(app.operator)[0]
    batch, workflow = _store_flows(app, sizes)
    app.close()
    rows = {name: _measure(server, url, read, sizes.rounds) for name, read in READS.items()}
    for name, path in PAGES.items():
        filled = path.format(job=newest, batch=batch, workflow=workflow)
        rows[name] = _measure_page(server, url, filled, sizes.rounds)
    document = {
        "case": "reads",
        **machine.describe(),
        "server": server.describe(),
        "sizes": asdict(sizes),
        "load_average": machine.load_average(),
        "reads": rows,
    }
    out.write_text(json.dumps(document, indent=1) + "\n")
    sys.stdout.write(_table(rows))


def _fill(server: Server, url: str, app: Freehold, sizes: Sizes) -> None:
    ready, heads = STAGE_NAMES["ready"], sizes.lanes // 100
    leased = {
        "owner": f"'w' || i % {sizes.workers}",
        "token": "i",
        "leased_at": "now()",
        "expires_at": "now() + interval '1 hour'",
    }
    with server.connect(url) as connection:

        def live(count: int, stage: str, **fields: str) -> None:
            values = {**_WAITING, "queues": sizes.queues, "count": count, "stage": stage, **fields}
            connection.execute(_LIVE.format(**values).encode())

        finished = _FINISHED.format(
            count=sizes.finished, queues=sizes.queues, workers=sizes.workers
        )
        connection.execute(finished.encode())
        live(sizes.live // 2, ready)
        live(sizes.live // 4, STAGE_NAMES["scheduled"], run_at="now() + interval '1 day'")
        for _ in range(max(1, sizes.live // 4 // sizes.lanes)):
            live(sizes.lanes, STAGE_NAMES["follower"], target="'lane' || i")
        live(heads, STAGE_NAMES["failed"], target="'lane' || i")
        live(sizes.lanes - heads, STAGE_NAMES["lane_head"], target=f"'lane' || i + {heads}")
        live(sizes.workers * _LEASED_EACH, STAGE_NAMES["leased"], **leased)
        connection.execute("vacuum analyze")
    tasks = tuple(f"t{number}" for number in range(50))
    for number in range(sizes.workers):
        beat = Heartbeat(
            owner=f"w{number}",
            host="bench",
            pid=number + 1,
            concurrency=_LEASED_EACH,
            queues=("*",),
            tasks=tasks,
            version="",
            running=_LEASED_EACH,
        )
        app._client.store.heartbeat(beat, 86_400.0)


def _store_flows(app: Freehold, sizes: Sizes) -> tuple[int, int]:
    """A batch, and a workflow whose nodes wait for the three before them."""

    @app.task(name="member")
    def member(number: int) -> None:
        """Never runs here."""

    batch = app.batch([member.prepare(number) for number in range(sizes.members)])
    with app.workflow("wide") as workflow:
        nodes: list[Node[None]] = []
        for number in range(sizes.nodes):
            nodes.append(workflow.add(member, number, after=nodes[-3:], name=f"n{number}"))
    assert workflow.id is not None
    return batch.id, workflow.id


def _measure(server: Server, url: str, read: Read, rounds: int) -> dict[str, float]:
    def opened() -> tuple[Callable[[], Any], Callable[[], None]]:
        app = Freehold(url)
        return (lambda: read(app.operator)), app.close

    return _measured(server, url, opened, rounds)


def _measure_page(server: Server, url: str, path: str, rounds: int) -> dict[str, float]:
    def opened() -> tuple[Callable[[], Any], Callable[[], None]]:
        reader = PageReader(Freehold(url))
        return (lambda: reader.get(path)), reader.close

    return _measured(server, url, opened, rounds)


def _measured(server: Server, url: str, opened: Opened, rounds: int) -> dict[str, float]:
    call, close = opened()
    try:
        cold = _milliseconds(call)
        warm = sorted(_milliseconds(call) for _ in range(rounds))
    finally:
        close()
    before = server.counters(url)
    call, close = opened()
    try:
        for _ in range(rounds):
            call()
    finally:
        close()
    counted = server.counters(url).per_job(before, rounds)
    return {
        "cold_ms": round(cold, 2),
        "warm_p50_ms": round(statistics.median(warm), 2),
        "warm_p95_ms": round(warm[int(0.95 * (len(warm) - 1))], 2),
        "buffers": counted["buffers"],
    }


def _milliseconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000


def _table(rows: dict[str, dict[str, float]]) -> str:
    lines = [f"{'read':<30} {'cold ms':>9} {'p50 ms':>9} {'p95 ms':>9} {'buffers':>10}"]
    lines += [
        f"{name:<30} {row['cold_ms']:>9.1f} {row['warm_p50_ms']:>9.1f} "
        f"{row['warm_p95_ms']:>9.1f} {row['buffers']:>10,.0f}"
        for name, row in rows.items()
    ]
    return "\n".join(lines) + "\n"
