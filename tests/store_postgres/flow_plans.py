"""Many flows in the filled database, and the statements that must not read all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from psycopg import Connection

from freehold.model.flow import NewNode
from freehold.model.job import NewJob
from freehold.store.stage_sql import STAGE_NAMES
from freehold.store.statements import Statement
from freehold.store.types import LeaseKey
from freehold.store.verbs.flows import member_params, member_statement
from freehold.store.verbs.workflows import _adding, _node_row
from tests.store_postgres.filling import FINISHED, live
from tests.store_postgres.plan_cases import BATCH, DAYS, NEWEST, Case

FLOWS = 100_000
CLOSED = 90_000
#: The last flow: a workflow with so many nodes, one after another. Some statements may read all of
#: them: by a plan of an empty table, two indexes that begin with the flow cost the same.
NODES = 10_000
#: Flows that have something to do.
DUE = 50
#: Members of a group that waits: one page is released.
WAITING = 300
#: The flows that a fold has locked; the last one is a workflow.
LOCKED = range(FLOWS - 9, FLOWS + 1)
READING_DAYS = {"ended_members", "fold_ends", "node_values", "restore_nodes", "standing_flows"}

_FLOWS = """
insert into freehold.flow (id, kind, name, state, total, succeeded, created_at, sealed_at,
    closed_at, parent_job, parent, node, due)
select i,
    case i % 10 when 0 then 'workflow' when 1 then 'gather' when 2 then 'group' else 'batch' end,
    'f', case when i <= {closed} then 'succeeded' else 'open' end, 10, 8, at,
    case when i < {count} then at end,
    case when i <= {closed} then at end, case when i % 10 = 1 then i end,
    case when i % 10 = 2 then i - 2 end, case when i % 10 = 2 then 2 end, i > {count} - {due}
from (select i, now() - ({count} - i) * interval '1 minute' as at
      from generate_series(1, {count}) i) x
"""
_RANGES = """
insert into freehold.flow_range (flow, first, last)
select i, i * 10 - 9, i * 10 from generate_series(1, {count}) i
"""
_NODES = """
insert into freehold.flow_node (flow, number, name, job_id, on_failure, state, counted_state,
    open_sources, waits)
select f, n, 'n' || n, f * 10 - 10 + n, 'cancel', state,
    case when n <> 5 or f < {count} then state end, case when n <= 6 then 0 else 1 end,
    n > 5 and f > {closed}
from (select f, n, case when n <= 5 or f <= {closed} then 'succeeded' end as state
      from generate_series(10, {count}, 10) f,
           generate_series(1, case when f = {count} then {nodes} else 10 end) n) x
"""
_EDGES = """
insert into freehold.flow_edge (flow, source, target, parameter)
select flow, number - 1, number, 'x' from freehold.flow_node where number > 1
"""
_ENDS = """
insert into freehold.flow_end (flow, node, succeeded)
select f, case when f % 10 = 0 then 4 + n end, 1
from generate_series({closed} + 1, {count}) f, generate_series(1, 2) n
"""


def lock(connection: Connection[Any]) -> None:
    """For all sessions to come: the flows that `try_flows` would lock for the statements after."""
    flows = ",".join(map(str, LOCKED))
    connection.execute(f"alter role current_user set freehold.flows = '{flows}'".encode())


def fill(connection: Connection[Any]) -> None:
    numbers = {"count": FLOWS, "closed": CLOSED, "due": DUE, "nodes": NODES}
    for text in (_FLOWS, _RANGES, _NODES, _EDGES, _ENDS):
        connection.execute(text.format(**numbers).encode())
    live(connection, WAITING, STAGE_NAMES["pending"], task="'waits in a group'")
    connection.execute(
        "update freehold.job set waits_for = 'flow/7' where task = 'waits in a group'"
    )


def cases() -> Iterator[Case]:
    yield from _folds()
    yield from _acts()
    yield from _additions()
    yield from _retries()
    yield from _reads()


def _folds() -> Iterator[Case]:
    yield Case("worklist", Statement("worklist", {"limit": BATCH}), BATCH)
    yield Case("due_flows", Statement("due_flows", {"after": 0, "limit": BATCH}), DUE)
    rows = [{"flow": flow} for flow in LOCKED]
    yield Case("look_at_flows", Statement("look_at_flows", {}, rows), len(LOCKED))
    # Two ends of each; a node with a follower is looked for in the history of every day.
    ends = 2 * len(LOCKED)
    yield Case("fold_ends", Statement("fold_ends", {"limit": 1_000}), 2 * ends, 10 * DAYS)
    yield Case("count_sources", Statement("count_sources", {}), len(LOCKED), NODES)
    yield Case("cancel_gathers", Statement("cancel_gathers", {}, [{"id": FLOWS - 9}]), 1, 20)


def _acts() -> Iterator[Case]:
    flow: dict[str, Any] = {"flow": FLOWS}
    node = {**flow, "number": 6, "id": FLOWS * 10 - 4}
    yield Case("due_nodes", Statement("due_nodes", {**flow, "limit": 200}), 1)
    yield Case("bad_source", Statement("bad_source", node), 1, NODES)
    yield Case("node_values", Statement("node_values", node), 1, DAYS + NODES)
    yield Case("node_sources", Statement("node_sources", {**node, "limit": 5}), 1, NODES)
    opened = [{"number": 6, "id": FLOWS * 10 - 4, "args": None}]
    yield Case("open_nodes", Statement("open_nodes", flow, opened), 1, NODES)
    group = Statement("open_group", {"part": 7, "limit": BATCH})
    yield Case("open_group", group, BATCH, WAITING)
    waiting = Statement("waiting_members", {"part": 7, "limit": BATCH})
    yield Case("waiting_members", waiting, BATCH, WAITING)
    released = Statement("release_node", {**node, "part": 8})
    yield Case("release_node", released, 1, 20)
    yield Case("wake_gather", Statement("wake_gather", {"flow": str(FLOWS - 9)}))
    yield Case("end_act", Statement("end_act", {**flow, "change": 0}))
    groups = {**flow, "by": None, "reason": None}
    yield Case("cancel_groups", Statement("cancel_groups", groups), 1, 20)


def _additions() -> Iterator[Case]:
    """To the workflow with many nodes, which has no seal. One node has a source."""
    added = _adding(FLOWS, [_node_row(FLOWS, _node(NODES + 1), None)])
    yield Case("add_nodes", added, 1, 2 * NODES)
    yield Case("add_members", member_statement(FLOWS, [NewJob(task="t")] * BATCH), BATCH, 20)
    params, shapes = member_params(FLOWS + 1, [NewJob(task="t")] * BATCH, "w1", LeaseKey(1, 1))
    step = {"name": "pages", "number": 1}
    yield Case("gather", Statement("gather", {**params, **step}, shapes), BATCH, 20)


def _retries() -> Iterator[Case]:
    """All counters of a workflow are counted again: for each node and edge so many rows."""
    again = {"flow": FLOWS, "by": "ann", "reason": None}
    yield Case("restore_nodes", Statement("restore_nodes", again), NODES)
    yield Case("recount_sources", Statement("recount_sources", {"flow": FLOWS}), NODES)
    group = {"flow": 2, "must_wait": True, "retried": True}
    yield Case("reopen_group", Statement("reopen_group", group))


def _node(number: int) -> NewNode:
    sources = ((NODES, ""),)
    return NewNode(number=number, name=f"n{number}", job=NewJob(task="t"), sources=sources)


def _reads() -> Iterator[Case]:
    for where, before in (("first", NEWEST), ("deep", FLOWS // 2)):
        page = {"before": before, "limit": 50, "window": 1_000}
        every = {**page, "kind": None, "state": None}
        yield Case(f"flows {where}", Statement("flows", every), 50, 20)
        rare = {**page, "kind": "batch", "state": "canceled"}
        yield Case(f"flows of no state {where}", Statement("flows", rare), 50, 1_000)
        end = {"before": before, "window": 1_000}
        yield Case(f"end_of_flow_window {where}", Statement("end_of_flow_window", end), 1, 1_000)
    yield Case("flow_by_key", Statement("flow_by_key", {"key": "nothing here"}))
    yield Case("read_flows", Statement("read_flows", {}, [{"id": FLOWS}]))
    yield Case("flow_ranges", Statement("flow_ranges", {"flow": FLOWS}))
    yield Case("flow_nodes", Statement("flow_nodes", {"flow": FLOWS // 2}), 10, 20)
    bounds = {"first": FINISHED // 2 - 9, "last": FINISHED // 2, "flow": str(FLOWS // 2)}
    yield Case("live_members", Statement("live_members", {**bounds, "limit": BATCH}))
    ended = {**bounds, "limit": BATCH, "states": ["succeeded", "failed"]}
    yield Case("ended_members", Statement("ended_members", ended), 10, DAYS)
    yield Case("flow_load", Statement("flow_load", {"bound": BATCH}), 3, 3 * BATCH)
    resting = {"bound": BATCH, "limit": 10}
    yield Case("resting_flows", Statement("resting_flows", resting), 1, 3 * BATCH)
    standing = {"seconds": 300.0, "bound": BATCH, "limit": 10}
    yield Case("standing_flows", Statement("standing_flows", standing), 10, 3 * BATCH + DAYS)
    old = {"history_days": 30.0, "limit": BATCH}
    yield Case("drop_old_flows", Statement("drop_old_flows", old), 10 * BATCH, 20)
