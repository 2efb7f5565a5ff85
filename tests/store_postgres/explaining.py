"""How much a statement reads: its plan, executed and rolled back.

Buffers are counted per relation, by the server's statistics of the running transaction, and only
those of freehold's relations. The buffers of EXPLAIN also contain the reads of the system catalogs,
which depend on the caches of the session. Any DDL in any database of the server sends invalidation
messages. A session that falls 4,096 messages behind drops its caches and reads the catalogs again:
300 buffers for an insert into `job`. On a busy machine that happened now and then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from psycopg import Connection, sql

#: Relations with a smaller oid are made by initdb: the system catalogs. `numscans` of a table is
#: the number of its sequential scans; index scans are counted at the index.
_COUNTS = """
select oid, relname, relkind, pg_stat_get_xact_blocks_fetched(oid), pg_stat_get_xact_numscans(oid)
from pg_class where oid >= 16384 and relkind in ('r', 'i', 'S', 't')
"""


@dataclass(frozen=True)
class Reading:
    """One executed plan, in numbers. The reads of its functions and triggers are included."""

    plan: dict[str, Any]
    rows_read: float
    buffers: int
    whole_tables: frozenset[str]
    #: Buffers by table and index.
    by_relation: dict[str, int]

    def story(self) -> str:
        """The nodes of the plan, a line each, for the failure message."""
        whole = ", ".join(sorted(self.whole_tables)) or "no table"
        lines = [f"read {self.rows_read:.0f} rows, {self.buffers} buffers, {whole} in whole"]
        for depth, node in _nodes(self.plan, 0):
            where = node.get("Index Name") or node.get("Relation Name") or ""
            loops, rows = node["Actual Loops"], node["Actual Rows"]
            if loops:
                lines.append(f"{'  ' * depth}{node['Node Type']} {where} {rows} x {loops}")
        return "\n".join(lines)


def explain(connection: Connection[Any], query: sql.Composed) -> Reading:
    """Execute it for its plan, and roll back."""
    with connection.transaction(force_rollback=True):
        # Parallel workers have their own counts. So none starts: the plan remains parallel, but the
        # session reads everything itself.
        connection.execute("set local max_parallel_workers = 0")
        before = _counts(connection)
        row = connection.execute(sql.SQL("explain (analyze, format json) ") + query).fetchone()
        after = _counts(connection)
    assert row is not None
    return _reading(row[0][0]["Plan"], [after[oid].since(before.get(oid)) for oid in after])


@dataclass(frozen=True)
class _Count:
    """The reads of one relation that the session has not yet reported to the server."""

    name: str
    kind: str
    buffers: int
    scans: int

    def since(self, before: _Count | None) -> _Count:
        if before is None:
            return self
        return replace(self, buffers=self.buffers - before.buffers, scans=self.scans - before.scans)


def _counts(connection: Connection[Any]) -> dict[int, _Count]:
    """By oid. Counts of earlier transactions are included; a difference within one is exact."""
    return {oid: _Count(*count) for oid, *count in connection.execute(_COUNTS)}


def _reading(plan: dict[str, Any], counts: list[_Count]) -> Reading:
    scans = [node for _, node in _nodes(plan, 0) if _reads_a_table(node)]
    in_plan = {n["Relation Name"] for n in scans if n["Node Type"] == "Seq Scan"}
    return Reading(
        plan,
        sum(_rows_read(node) for node in scans),
        sum(count.buffers for count in counts),
        frozenset(in_plan | {count.name for count in counts if count.kind == "r" and count.scans}),
        {count.name: count.buffers for count in counts},
    )


def _nodes(node: dict[str, Any], depth: int) -> Iterator[tuple[int, dict[str, Any]]]:
    yield depth, node
    for child in node.get("Plans", ()):
        yield from _nodes(child, depth + 1)


def _reads_a_table(node: dict[str, Any]) -> bool:
    """Of a bitmap, the index scan counts: its heap scan may read fewer rows, never more."""
    kind = str(node["Node Type"])
    if kind == "Bitmap Heap Scan":
        return False
    return kind == "Bitmap Index Scan" or (kind.endswith("Scan") and "Relation Name" in node)


def _rows_read(node: dict[str, Any]) -> float:
    thrown_away = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
    rows = node["Actual Rows"] + sum(node.get(name, 0) for name in thrown_away)
    return float(rows * node["Actual Loops"])
