"""`freehold flows`, `freehold batches`, and `freehold flow`: show, cancel, retry, seal one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from freehold.cli.common import (
    StoreChoice,
    StoreCommand,
    StoreGroup,
    as_json,
    author_options,
    change_by,
    print_json,
    store_options,
)
from freehold.cli.flow_view import flow_table, flow_view
from freehold.cli.render import job_table, show
from freehold.errors import BadInput
from freehold.json_views import job_document
from freehold.model.audit import Author
from freehold.model.flow import FlowKind, FlowState
from freehold.model.flow_graph import as_mermaid
from freehold.model.plural import count
from freehold.model.state import State
from freehold.store.types import PAGE_LIMIT, JobPage

F = TypeVar("F", bound=Callable[..., Any])

_ID = click.argument("flow_id", type=int, metavar="ID")
_KINDS = (FlowKind.BATCH, FlowKind.GATHER, FlowKind.WORKFLOW)


def _page_options(command: F) -> F:
    for option in (
        click.option("--before", type=int, help="Next page: begin before this id."),
        click.option(
            "--limit",
            type=click.IntRange(1, PAGE_LIMIT),
            default=50,
            show_default=True,
            help="Flows on one page.",
        ),
        click.option(
            "--state",
            type=click.Choice([state.value for state in FlowState]),
            help="Only in this state.",
        ),
    ):
        command = option(command)
    return command


@click.command(cls=StoreCommand)
@click.option(
    "--kind", type=click.Choice([kind.value for kind in _KINDS]), help="Only of this kind."
)
@_page_options
@as_json
@store_options
def flows(store: StoreChoice, kind: str | None, as_json: bool, **page: Any) -> None:
    """List batches, gathers and workflows, newest first."""
    _list(store, None if kind is None else FlowKind(kind), as_json, **page)


@click.command(cls=StoreCommand)
@_page_options
@as_json
@store_options
def batches(store: StoreChoice, as_json: bool, **page: Any) -> None:
    """List batches with their counts, newest first."""
    _list(store, FlowKind.BATCH, as_json, **page)


def _list(
    store: StoreChoice,
    kind: FlowKind | None,
    as_json: bool,
    *,
    state: str | None,
    limit: int,
    before: int | None,
) -> None:
    with store.open() as app:
        found = app.operator.flow_page(kind=kind, state=state, before=before, limit=limit)
        now = app.operator.now()
    if as_json:
        print_json(found)
    else:
        show(flow_table(found, now, kind=kind))


@click.group(cls=StoreGroup)
def flow() -> None:
    """Show, cancel, retry or seal a batch or workflow."""


@flow.command("show")
@_ID
@click.option("--mermaid", is_flag=True, help="Print the graph for Mermaid.")
@as_json
@store_options
def show_flow(store: StoreChoice, flow_id: int, mermaid: bool, as_json: bool) -> None:
    """Show a flow with its counts, callbacks and graph."""
    if mermaid and as_json:
        raise BadInput("--mermaid excludes --json: give one of them")
    with store.open() as app:
        detail = app.operator.flow_detail(flow_id)
        now = app.operator.now()
    if as_json:
        print_json(detail)
    elif not mermaid:
        show(flow_view(detail, now))
    elif not detail.nodes:
        raise BadInput(f"{detail.flow.kind} {flow_id} has no graph: only a workflow has one")
    else:
        click.echo(as_mermaid([node.shown() for node in detail.nodes]))


@flow.command()
@_ID
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in State]),
    help="Only in this state; can be given several times.",
)
@click.option("--after", type=click.IntRange(0), default=0, help="Next page: begin after this id.")
@click.option(
    "--limit", type=click.IntRange(1, PAGE_LIMIT), default=50, show_default=True, help="On a page."
)
@as_json
@store_options
def members(
    store: StoreChoice, flow_id: int, states: tuple[str, ...], after: int, limit: int, as_json: bool
) -> None:
    """List the jobs of a flow, in the order of ids."""
    with store.open() as app:
        page = app.operator.flow_members(flow_id, after, limit, tuple(map(State, states)))
        now = app.operator.now()
    if as_json:
        jobs = [job_document(job, show_args=False) for job in page.jobs]
        print_json({"jobs": jobs, "next": page.next})
        return
    show(job_table(JobPage(page.jobs, None), {}, {}, now))
    if page.next is not None:
        click.echo(f"\nmore: --after {page.next}")


@flow.command()
@_ID
@author_options
@as_json
@store_options
def cancel(store: StoreChoice, flow_id: int, author: Author, as_json: bool) -> None:
    """Cancel all jobs of a flow that have not ended. A running one is asked to stop."""
    with store.open() as app:
        done = app.operator.cancel_flow(flow_id, **change_by(author))
        found = app.operator.flow(flow_id)
    if as_json:
        print_json({"id": flow_id, "canceled": done})
        return
    left = count(found.counts.open, "node" if found.kind is FlowKind.WORKFLOW else "job")
    is_open = found.state is FlowState.OPEN
    state = "being canceled" if is_open else found.state
    if done:
        have = "has" if found.counts.open == 1 else "have"
        more = f": {left} {have} not ended yet" if is_open else ""
        click.echo(f"{found.kind} {flow_id} is {state}{more}")
    else:
        click.echo(f"{found.kind} {flow_id} is already {state}")


@flow.command()
@_ID
@author_options
@as_json
@store_options
def retry(store: StoreChoice, flow_id: int, author: Author, as_json: bool) -> None:
    """Run the jobs of a flow again that did not succeed."""
    with store.open() as app:
        jobs = app.operator.retry_flow(flow_id, **change_by(author))
        found = app.operator.flow(flow_id)
    if as_json:
        print_json({"id": flow_id, "jobs": jobs})
    elif jobs:
        click.echo(f"{count(jobs, 'job')} of {found.kind} {flow_id} will run again")
    else:
        click.echo(f"{found.kind} {flow_id} has no failed or canceled job")


@flow.command()
@_ID
@author_options
@as_json
@store_options
def seal(store: StoreChoice, flow_id: int, author: Author, as_json: bool) -> None:
    """Seal a batch whose producer is gone. Its callbacks come when all its jobs have ended."""
    with store.open() as app:
        done = app.operator.seal_flow(flow_id, **change_by(author))
        found = app.operator.flow(flow_id)
    if as_json:
        print_json({"id": flow_id, "sealed": done})
    else:
        click.echo(f"{found.kind} {flow_id} {'is' if done else 'was already'} sealed")
