"""The graph of a workflow as text: a list by levels, or Mermaid."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from freehold.model.flow import FlowNode


class ShownNode(msgspec.Struct, frozen=True):
    """A node as people see it. ``state``: a word."""

    number: int
    name: str
    state: str
    job_id: int | None
    sources: tuple[int, ...]


def shown(nodes: Sequence[FlowNode]) -> list[ShownNode]:
    """Stored nodes with their states."""
    return [
        ShownNode(node.number, node.name, _state(node), node.job_id, node.sources) for node in nodes
    ]


def _state(node: FlowNode) -> str:
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
