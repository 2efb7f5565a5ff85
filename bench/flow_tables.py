"""The results of `flows` as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.tables import at, conditions, number, ratio, rounds, table

#: The least rate of members, and their most WAL, of those of plain jobs.
_RATE_AIM, _WAL_AIM = 0.9, 1.1
_FAN_IN = ("batch", "map", "edges")


def flows(document: Mapping[str, Any]) -> str:
    medians, sizes = document["medians"], document["sizes"]
    parts = [
        conditions(document, rounds(document)),
        _members(medians, sizes),
        _aims(medians),
        _followers(medians, sizes),
    ]
    return "\n\n".join(parts)


def _members(medians: Mapping[str, Any], sizes: Mapping[str, Any]) -> str:
    names = {"plain": f"{sizes['members']:,} plain jobs", "batch": "as members of a batch"}
    rows = [
        [
            label,
            number(at(medians[name], "bulk")),
            number(at(medians[name], "rate")),
            number(at(medians[name], "cpu_us"), 1),
            number(at(medians[name], "fill", "wal_bytes")),
            number(at(medians[name], "wal_bytes")),
            number(at(medians[name], "statements", "buffers"), 1),
        ]
        for name, label in names.items()
        if name in medians
    ]
    head = [
        "",
        "bulk enqueue",
        "drain, jobs/s",
        "worker CPU µs",
        "WAL B to store",
        "WAL B to drain",
        "buffers to drain",
    ]
    return table(head, rows)


def _aims(medians: Mapping[str, Any]) -> str:
    batch, plain = medians.get("batch", {}), medians.get("plain", {})
    rate = ratio(at(batch, "rate"), at(plain, "rate"))
    wal = ratio(at(batch, "wal_of_a_job"), at(plain, "wal_of_a_job"))
    rows = [
        ["drain rate of members, to plain jobs", f"at least {_RATE_AIM:g}", rate],
        ["WAL of a member, to a plain job", f"at most {_WAL_AIM:g}", wal],
    ]
    return table(["aim", "", "reached"], rows)


def _followers(medians: Mapping[str, Any], sizes: Mapping[str, Any]) -> str:
    labels = {
        "batch": f"a batch of {sizes['members']:,}, its `on_end`",
        "map": f"a map of {sizes['map']:,}, its follower",
        "edges": f"two layers with {sizes['edges']:,} edges, the node after them",
    }
    rows = [
        [
            labels[name],
            number(at(medians[name], "follower_ms")),
            number(at(medians[name], "all_seconds"), 1),
            number(at(medians[name], "flow_statements", "calls")),
            number(at(medians[name], "flow_statements", "buffers")),
            number(at(medians[name], "flow_statements", "ms")),
            number(sum(medians[name]["rows_read"].values())),
        ]
        for name in _FAN_IN
        if name in medians
    ]
    head = [
        "",
        "last end to start, ms",
        "in all, s",
        "statements of folds and acts",
        "their buffers",
        "their ms",
        "rows of flows read",
    ]
    return table(head, rows)
