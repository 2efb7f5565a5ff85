"""The cost of statements to the server, where it keeps statistics of them (pg_stat_statements).

These are finer than the counters of the database: vacuum and the queries of the harness itself are
not part of them.
"""

from __future__ import annotations

import contextlib
from typing import Any

import psycopg

from bench.server import Server

#: No other statement of Freehold has both.
_IS_CLAIM = "(query like '%lease_token%' and query like '%skip locked%')"
_SUMS = """
    select sum(calls), sum(shared_blks_hit + shared_blks_read), sum(wal_bytes),
           sum(total_exec_time)
    from pg_stat_statements
    where dbid = (select oid from pg_database where datname = current_database())
      and query not like 'select count(*) from %.job%' and query not like '%pg_stat_%'
"""
#: Folds and acts. An end of a member has an insert into the worklist, and belongs to its job.
_IS_OF_FLOWS = "(query ~ 'freehold.flow' and query !~ 'insert into freehold.(flow|job|history)')"
_NAMES = ("calls", "buffers", "wal_bytes", "ms")


class StatementStatistics:
    """The statements of one database since this was created."""

    def __init__(self, server: Server, url: str) -> None:
        self._server = server
        self._url = url
        self.is_available = False
        with contextlib.suppress(psycopg.Error), server.connect(url) as connection:
            connection.execute("create extension if not exists pg_stat_statements")
            connection.execute("select pg_stat_statements_reset()")
            self.is_available = True

    def averages(self, jobs: int) -> dict[str, Any]:
        """Of all statements for each job, and of claims for each claim; empty if unavailable."""
        if not self.is_available:
            return {}
        with self._server.connect(self._url) as connection:
            every = connection.execute(_SUMS.encode()).fetchone()
            claims = connection.execute(f"{_SUMS} and {_IS_CLAIM}".encode()).fetchone()
        result: dict[str, Any] = {"statements": _averages(every, jobs)}
        if claims is not None and claims[0]:
            result["claim"] = _averages(claims, int(claims[0]))
        return result

    def of_flows(self) -> dict[str, float]:
        """All folds and acts together; empty if unavailable."""
        if not self.is_available:
            return {}
        with self._server.connect(self._url) as connection:
            sums = connection.execute(f"{_SUMS} and {_IS_OF_FLOWS}".encode()).fetchone()
        return _averages(sums, 1)


def _averages(sums: tuple[Any, ...] | None, count: int) -> dict[str, float]:
    return {n: round(float(v or 0) / count, 4) for n, v in zip(_NAMES, sums or (), strict=True)}
