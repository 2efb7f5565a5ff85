"""Parts that only some scenarios have: batches, workflows and gathers, and what operators do to
them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal, TypeAlias

from freehold.lab.simulation.step_plans import Part

_MOMENTS = ("success", "failure", "end")
_ENDS = ("return", "return", "return", "return", "error", "error", "fail", "cancel", "snooze")
_SECONDS = (0.0, 0.01, 0.1, 0.4, 1.2)
_FLOWS = 5

PlannedRuns: TypeAlias = tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class MemberPlan:
    """A job of a flow. ``adds``: how many members its handler adds to its batch, or nodes to its
    workflow, which then wait for it."""

    runs: PlannedRuns = ()
    target: str | None = None
    max_attempts: int = 3
    delay: float | None = None
    adds: int = 0


@dataclass(frozen=True, slots=True)
class NodePlan:
    """A node of a workflow: a job, or a group of jobs. ``sources`` are positions of other nodes;
    with ``gets`` it gets the result of the first one."""

    job: MemberPlan
    sources: tuple[int, ...] = ()
    on_failure: Literal["cancel", "hold", "run"] = "cancel"
    group: int = 0
    gets: bool = False


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """A client that stores a flow. ``is_open``: a batch that gets its members one by one, and is
    sealed afterwards. With ``nodes`` it is a workflow."""

    at: float
    number: int
    members: tuple[MemberPlan, ...]
    callbacks: tuple[str, ...] = ()
    is_open: bool = False
    #: Between the additions to an open batch.
    gap: float = 0.0
    nodes: tuple[NodePlan, ...] = ()


@dataclass(frozen=True, slots=True)
class FlowAction:
    """An operator's cancel or retry of a whole flow. ``share`` selects among the existing ones."""

    at: float
    number: int
    verb: str
    share: float


def flow_plans(
    chance: random.Random, horizon: float, lanes: tuple[str, ...]
) -> tuple[FlowPlan, ...]:
    """Small ones, so that most close within the time of the faults."""
    kinds = _batch, _workflow
    numbers = range(1, _FLOWS + 1)
    return tuple(kinds[number % 2](chance, horizon, lanes, number) for number in numbers)


def _batch(chance: random.Random, horizon: float, lanes: tuple[str, ...], number: int) -> FlowPlan:
    return FlowPlan(
        at=round(chance.uniform(0.0, horizon * 0.6), 3),
        number=number,
        members=tuple(_member(chance, lanes) for _ in range(chance.choice((0, 1, 2, 4, 7)))),
        callbacks=tuple(each for each in _MOMENTS if chance.random() < 0.7),
        is_open=chance.random() < 0.5,
        gap=chance.choice((0.0, 0.3, 0.8)),
    )


def _workflow(
    chance: random.Random, horizon: float, lanes: tuple[str, ...], number: int
) -> FlowPlan:
    nodes = tuple(_node(chance, lanes, position) for position in range(chance.choice((2, 4, 7))))
    at = round(chance.uniform(0.0, horizon * 0.5), 3)
    return FlowPlan(at=at, number=number, members=(), nodes=nodes)


def _node(chance: random.Random, lanes: tuple[str, ...], position: int) -> NodePlan:
    """Its sources are nodes before it, so that there is no cycle."""
    count = min(position, chance.choice((0, 1, 1, 2, 3)))
    return NodePlan(
        _member(chance, lanes),
        sources=tuple(sorted(chance.sample(range(position), count))),
        on_failure=chance.choice(("cancel", "cancel", "hold", "run")),
        group=chance.choice((0, 0, 0, 0, 3)),
        gets=chance.random() < 0.5,
    )


def gathering_parts(chance: random.Random) -> tuple[Part, ...]:
    """The parts of a handler that gathers, between two steps."""
    children = ("gather", "children", float(chance.choice((1, 2, 4))))
    return (("step", "before", 0.0), children, ("step", "after", 0.1))


def _member(chance: random.Random, lanes: tuple[str, ...]) -> MemberPlan:
    return MemberPlan(
        runs=tuple(
            (chance.choice(_SECONDS), chance.choice(_ENDS))
            for _ in range(chance.choice((0, 1, 1, 2)))
        ),
        target=chance.choice(lanes) if chance.random() < 0.2 else None,
        max_attempts=chance.choice((1, 2, 3)),
        delay=round(chance.uniform(0.2, 2.0), 3) if chance.random() < 0.15 else None,
        adds=chance.choice((1, 2)) if chance.random() < 0.2 else 0,
    )


def flow_actions(chance: random.Random, horizon: float) -> tuple[FlowAction, ...]:
    return tuple(
        FlowAction(
            at=round(chance.uniform(0.5, horizon), 3),
            number=number,
            verb=chance.choice(("cancel", "retry", "retry")),
            share=chance.random(),
        )
        for number in range(1, chance.choice((2, 3, 4)) + 1)
    )
