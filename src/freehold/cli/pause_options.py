"""Pause and resume of queues and lanes: their options and output."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from freehold.cli.common import by_option, print_json
from freehold.cli.types import timestamp

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
        click.echo(f"{kind} {name} is paused" + (f" until {until.isoformat()}" if until else ""))


def print_resumed(kind: str, key: str, name: str, was_paused: bool, as_json: bool) -> None:
    if as_json:
        print_json({key: name, "paused": False, "was_paused": was_paused})
    else:
        click.echo(f"{kind} {name} resumed" if was_paused else f"{kind} {name} was not paused")
