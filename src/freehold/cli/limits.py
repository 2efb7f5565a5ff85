"""`freehold limits`: how many at a time, how many in a time; of queues, of all, of keys."""

from __future__ import annotations

import click

from freehold.cli.common import StoreChoice, as_json, print_json, store_options
from freehold.cli.render import limit_table, show
from freehold.model.limit import ALL_QUEUES, NO_LIMIT, Limit, rate_of

_max = click.option(
    "--max", "at_most", type=click.IntRange(0), metavar="N", help="At most so many at a time."
)
_rate = click.option("--rate", metavar="N/TIME", help="So many starts in a time: 100/min, 5/2s.")


@click.group(invoke_without_command=True)
@as_json
@store_options
@click.pass_context
def limits(context: click.Context, store: StoreChoice, as_json: bool) -> None:
    """List limits; set them for a `queue`, for a `key`, or for `all` queues together."""
    if context.invoked_subcommand is not None:
        return
    with store.open() as app:
        queues, keys = app.operate.queue_limits(), app.operate.key_limits()
        shared = app.operate.shared_use()
    if as_json:
        print_json({"queues": queues, "keys": keys, "shared": shared})
    else:
        show(limit_table(queues, keys, shared))


@limits.command()
@click.argument("name")
@_max
@_rate
@as_json
@store_options
def queue(
    store: StoreChoice, name: str, at_most: int | None, rate: str | None, as_json: bool
) -> None:
    """Limit the queue NAME; with neither --max nor --rate the limit goes."""
    _set_queue(store, name, _limit(at_most, rate), as_json)


@limits.command(name="all")
@_max
@_rate
@as_json
@store_options
def all_queues(store: StoreChoice, at_most: int | None, rate: str | None, as_json: bool) -> None:
    """Limit all queues together, those of all tenants of the database too."""
    _set_queue(store, ALL_QUEUES, _limit(at_most, rate), as_json)


@limits.command()
@click.argument("key")
@_max
@_rate
@as_json
@store_options
def key(store: StoreChoice, key: str, at_most: int | None, rate: str | None, as_json: bool) -> None:
    """Limit jobs with limit_key=KEY; github:* is every key that begins so, each for itself."""
    limit = _limit(at_most, rate)
    with store.open() as app:
        app.operate.set_key_limit(key, limit)
    _print_limit({"key": key, "limit": limit}, f"key {key}: {limit}", as_json)


def _set_queue(store: StoreChoice, name: str, limit: Limit, as_json: bool) -> None:
    with store.open() as app:
        app.operate.set_queue_limit(name, limit)
    what = "all queues together" if name == ALL_QUEUES else f"queue {name}"
    _print_limit({"name": name, "limit": limit}, f"{what}: {limit}", as_json)


def _limit(at_most: int | None, rate: str | None) -> Limit:
    if at_most is None and rate is None:
        return NO_LIMIT
    return Limit(at_most, rate_of(rate) if rate is not None else None)


def _print_limit(document: dict[str, object], sentence: str, as_json: bool) -> None:
    if as_json:
        print_json(document)
    else:
        click.echo(sentence)
