"""The same for flows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from freehold.store.statements import Verb
from freehold.store.verbs import fold
from freehold.worker import flow_folder
from tests.simulation.bugs import Bug, Plant, code, sql


def both(*plants: Plant) -> Plant:
    @contextlib.contextmanager
    def plant() -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for each in plants:
                stack.enter_context(each())
            yield

    return plant


_look = fold._look


def _only_what_is_due(flows: Sequence[int]) -> Verb[list[tuple[int, bool, bool]]]:
    found = yield from _look(flows)
    return [(flow, False, is_due) for flow, _, is_due in found]


#: No sweep looks at the worklist, so that only the folds themselves count what others left.
WITHOUT_NET = sql(("worklist", "from flow_end", "from flow_end where 0"))
_CLOSES = "(sealed_at is not null and total <= "
_RELEASED = "where flow = :flow and moment = :moment and job_id is null"
_ENDS = "and (:state in ('succeeded', 'failed', 'canceled') or stage = {failed})"
_OWNED = "exists (select 1 from job where id = :id"
_ASKED_IF_DUE = ("due_nodes", "count_sources", "add_nodes")
#: Two folds of a flow at once are rare with the pause between those of a worker.
_WITHOUT_PAUSE = code(flow_folder, "PAUSE_SECONDS", 0.0)
_BUGS: dict[str, Plant] = {
    "a fold does not look again": both(
        code(fold, "_look", _only_what_is_due), WITHOUT_NET, _WITHOUT_PAUSE
    ),
    "no sweep folds what a dead worker left": WITHOUT_NET,
    "ends that are folded together count once": sql(
        ("fold_ends", "coalesce(sum(succeeded), 0)", "coalesce(max(succeeded), 0)")
    ),
    "counters are written from a snapshot": sql(
        ("fold_ends", "set succeeded = succeeded + s.ended_well", "set succeeded = s.ended_well")
    ),
    "a callback is released again": both(
        sql(("release_callback", _RELEASED, "where flow = :flow and moment = :moment")),
        _WITHOUT_PAUSE,
    ),
    "a member that is retried stays counted": sql(
        ("requeue_finished", "-(state = 'succeeded'), -(state = 'failed')", "0, 0")
    ),
    "the end of a member whose worker was lost is not counted": sql(
        ("transition_in_flow", _ENDS, f"{_ENDS} and not :expired")
    ),
    "a success of a member is not counted": sql(
        ("succeed_in_flow", ", 1 from job where", ", 0 from job where")
    ),
    "a failed member that is resumed stays counted": sql(
        ("transition_in_flow", "(:state = 'failed') - (stage = {failed})", "(:state = 'failed')")
    ),
    "a batch closes before it is sealed": sql(("fold_ends", _CLOSES, "(total <= ")),
    "a flow that closes is not acted upon": sql(
        ("fold_ends", "due = due or s.cancels or ", "due = due or s.cancels and ")
    ),
    "a worker that lost its lease adds members": sql(
        ("add_members", _OWNED, _OWNED.replace("where", "where 1 or"))
    ),
    "a node does not wait for its last source": sql(
        *((name, "n.open_sources = 0", "n.open_sources <= 1") for name in _ASKED_IF_DUE)
    ),
    "a canceled source releases its followers": sql(
        ("count_sources", "n.state in ('failed', 'canceled')", "n.state in ('failed')"),
    ),
    "a new edge does not know that its source has ended": sql(
        ("add_nodes", "where n.counted_state is null)", "where 1)")
    ),
    "a source is counted again at each fold": sql(
        (
            "count_sources",
            "set counted_state = state where",
            "set counted_state = state where 0 and",
        )
    ),
    "a node is canceled though its source succeeded": sql(
        ("count_sources", "n.state in ('failed', 'canceled')", "n.state in ('succeeded')")
    ),
    "a retried workflow keeps its old counters": sql(
        ("restore_nodes", "set failed = failed - (", "set failed = failed - 0 * (")
    ),
    "a retried node does not wait for its sources": sql(
        ("restore_nodes", "s.state is not 'succeeded'", "0")
    ),
    "the job that gathers is not woken": sql(
        ("wake_gather", "where waits_for = ", "where 0 and waits_for = ")
    ),
    "a gather that closes before the suspension is missed": sql(
        *((name, "f.closed_at is not null", "0") for name in ("transition", "transition_in_flow"))
    ),
    "a worker that lost its lease gathers": sql(
        ("gather", _OWNED, _OWNED.replace("where", "where 1 or"))
    ),
}
#: Seeds that find each bug.
_SEEDS: dict[str, tuple[int, ...]] = {
    "no sweep folds what a dead worker left": (24,),
    "ends that are folded together count once": (5,),
    "counters are written from a snapshot": (5,),
    "a callback is released again": (17,),
    "a member that is retried stays counted": (185,),
    "the end of a member whose worker was lost is not counted": (24,),
    "a success of a member is not counted": (5,),
    "a failed member that is resumed stays counted": (137,),
    "a batch closes before it is sealed": (317,),
    "a flow that closes is not acted upon": (5,),
    "a node does not wait for its last source": (5,),
    "a canceled source releases its followers": (24,),
    "a new edge does not know that its source has ended": (84,),
    "a source is counted again at each fold": (5,),
    "a node is canceled though its source succeeded": (5,),
    "a retried workflow keeps its old counters": (217,),
    "a retried node does not wait for its sources": (17,),
    "the job that gathers is not woken": (5,),
}
FLOW_BUGS = {name: Bug(name, plant, _SEEDS.get(name, ())) for name, plant in _BUGS.items()}
