"""What a statement really read: its plan, executed, undone, and added up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from psycopg import Connection, sql


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


def explain(connection: Connection[Any], query: sql.Composed) -> Reading:
    """Execute it for its plan, and undo what it wrote."""
    with connection.transaction(force_rollback=True):
        row = connection.execute(
            sql.SQL("explain (analyze, buffers, format json) ") + query
        ).fetchone()
    assert row is not None
    return _reading(row[0][0]["Plan"])


def _reading(plan: dict[str, Any]) -> Reading:
    scans = [node for _, node in _nodes(plan, 0) if _reads_a_table(node)]
    return Reading(
        plan,
        sum(_rows_read(node) for node in scans),
        plan["Shared Hit Blocks"] + plan["Shared Read Blocks"],
        tuple(n["Relation Name"] for n in scans if n["Node Type"] == "Seq Scan"),
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
