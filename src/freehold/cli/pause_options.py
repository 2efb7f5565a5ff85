"""Pause and resume of queues and lanes: their options and output."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from freehold.cli.common import by_option, print_json
from freehold.cli.types import timestamp
from freehold.model.limit import ALL_QUEUES

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--reason", help="Reason, shown by `freehold job explain`."),
    click.option(
        "--until", type=timestamp, metavar="TIME", help="End of the pause: 2030-01-31T12:00:00Z."
    ),
    by_option,
)


def pause_options(command: F) -> F:
    """--reason, --until and --by."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def print_paused(kind: str, key: str, name: str, until: datetime | None, as_json: bool) -> None:
    if as_json:
        print_json({key: name, "paused": True, "until": until})
    else:
        end = f" until {until.isoformat()}" if until else ""
        click.echo(f"{_what(kind, name)} {_be(kind, name, 'is', 'are')} paused{end}")


def print_resumed(kind: str, key: str, name: str, was_paused: bool, as_json: bool) -> None:
    if as_json:
        print_json({key: name, "paused": False, "was_paused": was_paused})
    elif was_paused:
        click.echo(f"{_what(kind, name)} resumed")
    else:
        click.echo(f"{_what(kind, name)} {_be(kind, name, 'was', 'were')} not paused")


def _what(kind: str, name: str) -> str:
    return "all queues" if _is_all(kind, name) else f"{kind} {name}"


def _be(kind: str, name: str, one: str, many: str) -> str:
    return many if _is_all(kind, name) else one


def _is_all(kind: str, name: str) -> bool:
    return kind == "queue" and name == ALL_QUEUES
