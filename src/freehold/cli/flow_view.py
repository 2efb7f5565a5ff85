"""Batches and workflows as tables and sentences for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from freehold.cli.render import at, since
from freehold.cli.table import ListTable
from freehold.cli.text import clean, one_line
from freehold.model.flow import Counts, Flow, FlowKind
from freehold.model.flow_graph import FlowDetail, NodeInfo, flow_state
from freehold.store.types import FlowLoad, FlowPage

_STYLE = {
    "open": "cyan",
    "queued": "cyan",
    "assigned": "blue",
    "running": "bold blue",
    "paused": "yellow",
    "not sealed": "yellow",
    "held": "yellow",
    "canceling": "magenta",
    "succeeded": "green",
    "failed": "bold red",
    "canceled": "magenta",
    "waiting": "dim",
}


def _state(word: str) -> Text:
    return Text(word, style=_STYLE.get(word, ""))


def flow_table(page: FlowPage, now: datetime, *, kind: FlowKind | None = None) -> RenderableType:
    if not page.flows and page.next is None:
        return Text("no flows" if kind is None else f"no {_PLURAL[kind]}", style="dim")
    columns = ("id", "kind", "name", "state", "ended", "failed", "canceled", "created")
    table = ListTable(*columns, right=("id", *columns[4:7]), names=("name",))
    for each in page.flows:
        counts = each.counts
        table.add_row(
            str(each.id),
            "" if kind is not None else each.kind,
            clean(each.name if each.key is None else f"{each.name} {each.key}"),
            _state(flow_state(each)),
            f"{counts.ended:,}/{counts.total:,}",
            Text(f"{counts.failed:,}", style="bold red") if counts.failed else "",
            f"{counts.canceled:,}" if counts.canceled else "",
            since(each.created_at, now),
        )
    if page.next is None:
        return table
    return Group(table, Text(f"\nmore: --before {page.next}", style="dim"))


_PLURAL = {
    FlowKind.BATCH: "batches",
    FlowKind.GATHER: "gathers",
    FlowKind.WORKFLOW: "workflows",
    FlowKind.GROUP: "groups",
}


def flow_view(detail: FlowDetail, now: datetime) -> RenderableType:
    flow = detail.flow
    title = Text.assemble(
        (f"{flow.kind} {flow.id}", "bold"), f"  {clean(flow.name)}  ", _state(flow_state(flow))
    )
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim")
    facts.add_column(overflow="fold")
    for name, value in _facts(detail, now):
        facts.add_row(f"  {name}", Text(clean(value)))
    return Group(title, facts, *((Text(), node_table(detail.nodes)) if detail.nodes else ()))


def _facts(detail: FlowDetail, now: datetime) -> Iterator[tuple[str, str]]:
    flow = detail.flow
    if flow.key is not None:
        yield "key", flow.key
    by = f" by {flow.created_by}" if flow.created_by else ""
    yield "created", f"{at(flow.created_at)}, {since(flow.created_at, now)}{by}"
    yield ("nodes" if detail.nodes else "jobs"), counts_sentence(flow.counts)
    if flow.sealed_at is None:
        yield "not sealed", "its producer may still add jobs, and its callbacks wait for the seal"
    if flow.parent_job is not None:
        yield "gathered by", f"job {flow.parent_job}"
    if flow.parent is not None:
        yield "group of", f"workflow {flow.parent}"
    for each in detail.callbacks:
        released = "not released" if each.job_id is None else f"job {each.job_id}"
        yield f"on_{each.moment}", released
    if flow.canceled_at is not None:
        why = f": {one_line(flow.cancel_reason)}" if flow.cancel_reason else ""
        yield "canceled", f"{since(flow.canceled_at, now)} by {flow.canceled_by}{why}"
    if flow.closed_at is not None:
        yield "ended", f"{at(flow.closed_at)}, {since(flow.closed_at, now)}"


def counts_sentence(counts: Counts) -> str:
    """Those that have ended by their state, and the rest: "5: 3 succeeded, 2 open"."""
    words = ("succeeded", "failed", "canceled", "open")
    parts = [f"{getattr(counts, word):,} {word}" for word in words if getattr(counts, word)]
    return f"{counts.total:,}" + (f": {', '.join(parts)}" if parts else "")


def node_table(nodes: Sequence[NodeInfo]) -> ListTable:
    """The graph as text: a line for each node, with what it comes after."""
    names = {node.number: clean(node.name) for node in nodes}
    table = ListTable(
        *("node", "state", "job", "after", "if one fails", "jobs"),
        names=("node",),
        right=("job",),
        wrapped=("after", "jobs"),
    )
    for node in nodes:
        table.add_row(
            names[node.number],
            _state(node.state),
            "" if node.job_id is None else str(node.job_id),
            ", ".join(names.get(number, "?") for number in node.sources),
            node.on_failure if node.sources and node.on_failure != "cancel" else "",
            "" if node.counts is None else counts_sentence(node.counts),
        )
    return table


def flows_line(load: FlowLoad, newest: Sequence[Flow]) -> Text:
    """For `top`: how many are open, and how far the newest batches and workflows are."""
    line = Text("Flows", style="bold underline", no_wrap=True, overflow="ellipsis")
    line.append(f"   {load.open:,} open", style="not bold not underline dim")
    shown = [flow for flow in newest if flow.closed_at is None and flow.kind is not FlowKind.GATHER]
    for each in shown[:3]:
        counts = each.counts
        progress = f"{clean(each.name)} {counts.ended:,}/{counts.total:,}"
        line.append(f"   {each.kind} {each.id} {progress}", style="not bold not underline")
        if counts.failed:
            line.append(f" {counts.failed:,} failed", style="not underline bold red")
    return line
