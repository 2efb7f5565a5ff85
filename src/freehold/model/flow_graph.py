"""Flows as people see them: words for states, and the graph as text or for Mermaid."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from freehold.model.flow import Counts, Flow, FlowNode, FlowState, Moment, OnFailure


class ShownNode(msgspec.Struct, frozen=True):
    """A node as people see it. ``state``: a word."""

    number: int
    name: str
    state: str
    job_id: int | None
    sources: tuple[int, ...]


class FlowCallback(msgspec.Struct, frozen=True):
    """``job_id``: null until it is released."""

    moment: Moment
    job_id: int | None


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A node of a workflow. ``state``: of its job if that is released; "waiting" for sources;
    "held" because one of them did not succeed; "open" for the jobs of a group. ``group``: the flow
    of its jobs, with their ``counts``. ``sources``: numbers of nodes."""

    number: int
    name: str
    state: str
    job_id: int | None
    group: int | None
    counts: Counts | None
    on_failure: OnFailure
    sources: tuple[int, ...]

    def shown(self) -> ShownNode:
        return ShownNode(self.number, self.name, self.state, self.job_id, self.sources)


class FlowDetail(msgspec.Struct, frozen=True):
    """A flow with its callbacks and, of a workflow, its nodes in the order of their numbers."""

    flow: Flow
    callbacks: list[FlowCallback]
    nodes: list[NodeInfo]


def shown(nodes: Sequence[FlowNode]) -> list[ShownNode]:
    """Stored nodes with their states."""
    return [
        ShownNode(node.number, node.name, node_state(node), node.job_id, node.sources)
        for node in nodes
    ]


def flow_state(flow: Flow) -> str:
    """The state of a flow as people see it: an open one can be on its way to another."""
    if flow.state is not FlowState.OPEN:
        return flow.state.value
    if flow.canceled_at is not None:
        return "canceling"
    return "open" if flow.sealed_at is not None else "not sealed"


def node_state(node: FlowNode) -> str:
    """The word "open": its job is released, and has a state of its own."""
    if node.state is not None:
        return node.state.value
    if not node.waits:
        return "open"
    return "held" if not node.open_sources and node.bad_sources else "waiting"


def as_text(nodes: Sequence[ShownNode]) -> str:
    """A line for each node, in their order, with what it waits for."""
    names = {node.number: node.name for node in nodes}
    width = max((len(node.name) for node in nodes), default=0)
    lines = []
    for node in nodes:
        after = ", ".join(names[number] for number in node.sources if number in names)
        job = "" if node.job_id is None else f"  job {node.job_id}"
        line = f"{node.name:{width}}  {node.state:9}{job}" + (f"  after {after}" if after else "")
        lines.append(line.rstrip())
    return "\n".join(lines)


def as_mermaid(nodes: Sequence[ShownNode]) -> str:
    """For Mermaid, which draws graphs in Markdown."""
    lines = ["flowchart TD"]
    lines += [f'    n{node.number}["{_quoted(node.name)}<br/>{node.state}"]' for node in nodes]
    lines += [f"    n{source} --> n{node.number}" for node in nodes for source in node.sources]
    return "\n".join(lines)


def _quoted(name: str) -> str:
    """Mermaid takes HTML entities in labels."""
    entities = {'"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;", "&": "#amp;"}
    return "".join(entities.get(char, char) for char in name)
