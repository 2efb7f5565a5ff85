"""What statements cost the server, where it keeps statistics of them (pg_stat_statements).

Finer than the counters of the database: vacuum, and the harness's own questions, are not in it.
"""

from __future__ import annotations

import contextlib
from typing import Any

import psycopg

from bench.server import Server

#: What no other statement of Freehold has.
_IS_CLAIM = "(query like '%lease_token%' and query like '%skip locked%')"
_SUMS = """
    select sum(calls), sum(shared_blks_hit + shared_blks_read), sum(wal_bytes),
           sum(total_exec_time)
    from pg_stat_statements
    where dbid = (select oid from pg_database where datname = current_database())
      and query not like 'select count(*) from freehold.job%' and query not like '%pg_stat_%'
"""
_NAMES = ("calls", "buffers", "wal_bytes", "ms")


class Statements:
    """Counts from here on."""

    def __init__(self, server: Server, url: str) -> None:
        self._server = server
        self._url = url
        self._there = False
        with contextlib.suppress(psycopg.Error), server.connect(url) as connection:
            connection.execute("create extension if not exists pg_stat_statements")
            connection.execute("select pg_stat_statements_reset()")
            self._there = True

    def counted(self, jobs: int) -> dict[str, Any]:
        """Of all statements for each job, and of claims for each claim."""
        if not self._there:
            return {}
        with self._server.connect(self._url) as connection:
            every = connection.execute(_SUMS.encode()).fetchone()
            claims = connection.execute(f"{_SUMS} and {_IS_CLAIM}".encode()).fetchone()
        answer: dict[str, Any] = {"statements": _shares(every, jobs)}
        if claims is not None and claims[0]:
            answer["claim"] = _shares(claims, int(claims[0]))
        return answer


def _shares(sums: tuple[Any, ...] | None, of: int) -> dict[str, float]:
    return {n: round(float(v or 0) / of, 4) for n, v in zip(_NAMES, sums or (), strict=True)}
