"""What a sweep costs where no schedule is declared."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import sql

from freehold.store.postgres.database import PostgresDatabase
from freehold.store.statements import Statement
from tests.store_postgres.explaining import explain
from tests.testing.virtual_app import VirtualApp


@pytest.mark.requirement("N1", "N13")
def test_without_schedules_a_sweep_probes_their_index_once(database: PostgresDatabase) -> None:
    text, values = database._statements.with_values(Statement("sweep_check", {"tasks": ["t"]}))
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute("truncate freehold.schedule")  # as it is created
        connection.execute("set plan_cache_mode = force_generic_plan")  # as in a worker
        connection.execute(b"prepare looked_at as " + text)
        query = sql.SQL("execute looked_at({})").format(sql.SQL(", ").join(values))
        explain(connection, query)  # the planner reads a page of each index
        reading = explain(connection, query)
    scans = [node for node in nodes(reading.plan) if node.get("Relation Name") == "schedule"]
    found = [(node.get("Index Name"), node["Actual Loops"]) for node in scans]
    assert found == [("schedule_due", 1)], reading.story()
    read = {name: count for name, count in reading.by_relation.items() if "schedule" in name}
    assert {name: count for name, count in read.items() if count} == {"schedule_due": 1}


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(each for child in plan.get("Plans", ()) for each in nodes(child))]


@pytest.mark.requirement("N1", "N13")
def test_without_schedules_a_worker_sends_no_statement_about_them() -> None:
    app = VirtualApp()
    app.work_until_idle()
    assert app.database.times("sweep_check")
    assert not {name for name, _ in app.database.seen if "schedule" in name or name == "fire"}
