"""Bulk operations as text."""

from __future__ import annotations

from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from freehold.cli.render import since
from freehold.cli.table import ListTable
from freehold.cli.text import clean, one_line
from freehold.model.bulk import BulkOperation, BulkPreview, BulkState
from freehold.model.plural import count


def preview_text(verb: str, preview: BulkPreview) -> str:
    """How many jobs would be changed, and how many not, by cause."""
    lines = [f"{verb} of {count(preview.jobs, 'job')}:"]
    lines += [f"  {number:>7}  {state} to be changed" for state, number in preview.done.items()]
    if preview.requested:
        lines.append(f"  {preview.requested:>7}  held by workers, which will be asked to stop")
    if preview.already:
        lines.append(f"  {preview.already:>7}  so already")
    lines += [
        f"  {number:>7}  refused: {clean(cause)}" for cause, number in _causes(preview.refused)
    ]
    return "\n".join(lines)


def _causes(refused: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(refused.items(), key=lambda each: -each[1])


def operation_text(operation: BulkOperation, now: datetime) -> RenderableType:
    """One operation with its progress."""
    size, reason = count(operation.jobs, "job"), operation.reason
    asked = f"asked {since(operation.asked_at, now)} by {clean(operation.by)} ({operation.via})"
    progress = {
        "done": operation.done,
        "asked of workers": operation.requested,
        "so already": operation.already,
        "changed meanwhile": operation.changed,
        "left": operation.left,
    }
    lines = [
        f"bulk operation {operation.id}: {operation.verb} of {size}, {operation.state}",
        f"{asked}: {clean(one_line(reason))}" if reason else asked,
        f"filter: {_filter(operation)}",
        ", ".join(f"{what} {number}" for what, number in progress.items()),
    ]
    lines += [f"refused {number}: {clean(cause)}" for cause, number in _causes(operation.refused)]
    if operation.state is BulkState.RUNNING:
        lines.append(f"workers carry it out; `freehold bulk show {operation.id}` shows how far")
    return Text("\n".join(lines))


def _filter(operation: BulkOperation) -> str:
    return clean(" ".join(f"{name}={value}" for name, value in operation.filter.items()))


def operation_table(operations: list[BulkOperation], now: datetime) -> RenderableType:
    if not operations:
        return Text("no bulk operations", style="dim")
    table = ListTable(
        *("id", "verb", "state", "jobs", "done", "refused", "left", "asked", "by", "filter"),
        right=("id", "jobs", "done", "refused", "left"),
        names=("by",),
        wrapped=("filter",),
    )
    for each in operations:
        table.add_row(
            str(each.id),
            each.verb,
            each.state,
            str(each.jobs),
            str(each.done + each.requested),
            str(sum(each.refused.values())),
            str(each.left),
            since(each.asked_at, now),
            clean(each.by),
            _filter(each),
        )
    return table
