"""What a statement really read: its plan, executed, undone, and added up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, sql

from leasehold.store.postgres.database import PostgresDatabase
from leasehold.store.steps import Statement


@dataclass(frozen=True)
class Reading:
    """One executed plan, in numbers."""

    plan: dict[str, Any]
    rows_read: float
    buffers: int
    whole_tables: tuple[str, ...]

    def story(self) -> str:
        """The plan's nodes, a line each, for whoever must find out what went wrong."""
        lines = [f"read {self.rows_read:.0f} rows, {self.buffers} buffers"]
        for depth, node in _nodes(self.plan, 0):
            where = node.get("Index Name") or node.get("Relation Name") or ""
            loops, rows = node["Actual Loops"], node["Actual Rows"]
            if loops:
                lines.append(f"{'  ' * depth}{node['Node Type']} {where} {rows} x {loops}")
        return "\n".join(lines)


def explain(
    connection: Connection[Any], database: PostgresDatabase, statement: Statement, *, generic: bool
) -> Reading:
    """EXPLAIN ANALYZE of the statement as it is really sent, in a transaction that is undone."""
    text, values = database._statements.prepare(statement)
    mode = "force_generic_plan" if generic else "force_custom_plan"
    with connection.transaction(force_rollback=True):
        connection.execute(f"set local plan_cache_mode = {mode}".encode())
        connection.execute(b"prepare looked_at as " + text)
        try:
            call = sql.SQL("execute looked_at({})").format(sql.SQL(", ").join(values))
            if not values:
                call = sql.SQL("execute looked_at").format()
            explained = sql.SQL("explain (analyze, buffers, format json) ") + call
            row = connection.execute(explained).fetchone()
        finally:
            connection.execute("deallocate looked_at")
    assert row is not None
    return _reading(row[0][0]["Plan"])


def _reading(plan: dict[str, Any]) -> Reading:
    scans = [node for _, node in _nodes(plan, 0) if _reads_a_table(node)]
    return Reading(
        plan,
        sum(_rows_read(node) for node in scans),
        plan["Shared Hit Blocks"] + plan["Shared Read Blocks"],
        tuple(n["Relation Name"] for n in scans if n["Node Type"] == "Seq Scan" and _is_large(n)),
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


def _is_large(node: dict[str, Any]) -> bool:
    """The tables that grow. Whether a scan of them was executed does not matter: it could be."""
    return str(node["Relation Name"]).startswith(("job", "history", "event", "idempotency"))


def _rows_read(node: dict[str, Any]) -> float:
    thrown_away = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return float((node["Actual Rows"] + thrown_away) * node["Actual Loops"])
