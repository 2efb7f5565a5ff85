"""`freehold limits`: limits on running jobs and on the rate of starts, of queues and limit keys."""

from __future__ import annotations

from collections.abc import Sequence

import click

from freehold.cli.common import (
    StoreChoice,
    StoreGroup,
    as_json,
    author_options,
    change_by,
    print_json,
    store_options,
)
from freehold.cli.render import UsedLimit, limit_table, show
from freehold.model.audit import Author
from freehold.model.explain import LimitUse
from freehold.model.limit import ALL_QUEUES, NO_LIMIT, Limit, rate_of
from freehold.operator import Operator

_max = click.option(
    "--max",
    "max_leases",
    type=click.IntRange(0),
    metavar="N",
    help="Maximum number running at once.",
)
_rate = click.option("--rate", metavar="N/TIME", help="Maximum rate of starts: 100/min, 5/2s.")


@click.group(cls=StoreGroup, invoke_without_command=True)
@as_json
@store_options
@click.pass_context
def limits(context: click.Context, store: StoreChoice, as_json: bool) -> None:
    """List limits; set those of queues and limit keys."""
    if context.invoked_subcommand is not None:
        return
    with store.open() as app:
        operator = app.operator
        queues = [(each, operator.queue_use(each.name)) for each in operator.queue_limits()]
        keys = [(each, _key_use(operator, each.name)) for each in operator.key_limits()]
        shared = operator.shared_use()
    if as_json:
        print_json({"queues": _documents(queues), "keys": _documents(keys), "shared": shared})
    else:
        show(limit_table(queues, keys, shared))


def _key_use(operator: Operator, key: str) -> LimitUse | None:
    """A rule for many keys has a use for each of them."""
    return None if key.endswith("*") else operator.key_use(key)


def _documents(limits: Sequence[UsedLimit]) -> list[dict[str, object]]:
    return [
        {
            "name": each.name,
            "limit": each.limit,
            "use": use and {"leased": use.leased, "started": use.started},
        }
        for each, use in limits
    ]


@limits.command()
@click.argument("name")
@_max
@_rate
@author_options
@as_json
@store_options
def queue(
    store: StoreChoice,
    name: str,
    max_leases: int | None,
    rate: str | None,
    author: Author,
    as_json: bool,
) -> None:
    """Limit the queue NAME. Without --max and --rate its limit is removed."""
    _set_queue(store, name, _limit(max_leases, rate), author, as_json)


@limits.command(name="all")
@_max
@_rate
@author_options
@as_json
@store_options
def all_queues(
    store: StoreChoice, max_leases: int | None, rate: str | None, author: Author, as_json: bool
) -> None:
    """Limit all queues together. The limit includes all tenants of the database."""
    _set_queue(store, ALL_QUEUES, _limit(max_leases, rate), author, as_json)


@limits.command()
@click.argument("key")
@_max
@_rate
@author_options
@as_json
@store_options
def key(
    store: StoreChoice,
    key: str,
    max_leases: int | None,
    rate: str | None,
    author: Author,
    as_json: bool,
) -> None:
    """Limit the jobs with limit_key=KEY. github:* sets one limit for each key that begins so."""
    limit = _limit(max_leases, rate)
    with store.open() as app:
        app.operator.set_key_limit(key, limit, **change_by(author))
    _print_limit({"key": key, "limit": limit}, f"key {key}: {limit}", as_json)


def _set_queue(store: StoreChoice, name: str, limit: Limit, author: Author, as_json: bool) -> None:
    with store.open() as app:
        app.operator.set_queue_limit(name, limit, **change_by(author))
    subject = "all queues together" if name == ALL_QUEUES else f"queue {name}"
    _print_limit({"name": name, "limit": limit}, f"{subject}: {limit}", as_json)


def _limit(max_leases: int | None, rate: str | None) -> Limit:
    if max_leases is None and rate is None:
        return NO_LIMIT
    return Limit(max_leases, rate_of(rate) if rate is not None else None)


def _print_limit(document: dict[str, object], sentence: str, as_json: bool) -> None:
    if as_json:
        print_json(document)
    else:
        click.echo(sentence)
