"""Every command with its arguments and options."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import click

from freehold.cli import main
from freehold.cli.common import StoreOption
from freehold.cli.errors import EXIT_CODES
from scripts.site.markdown import code, page, table

INTRO = """Every command, as `freehold COMMAND --help` prints it. Settings come from flags, then `FREEHOLD_*`, then
`freehold.toml`: see [configuration](configuration.md). [Shell completion](../operations.md#shell-completion) knows
them all."""


def cli_page() -> str:
    context = click.Context(main, info_name="freehold")
    exits = "## Exit codes\n\n" + code(EXIT_CODES.replace("\b\n", "")) + "\n"
    workers = "A worker also ends with 75 if a handler could not be stopped: start a new process.\n"
    return page("Command line", INTRO, _store_options(), *_commands(context, main), exits + workers)


def _commands(parent: click.Context, group: click.Group) -> Iterator[str]:
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=parent)
        yield _command(context, command)
        if isinstance(command, click.Group):
            yield from _commands(context, command)


def _command(context: click.Context, command: click.Command) -> str:
    depth = context.command_path.count(" ") + 1
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parts = [f"{'#' * min(depth, 3)} {context.command_path}\n", code(usage), _help(command)]
    records = [each.get_help_record(context) for each in command.params]
    rows = [_option(*record) for record in records if record is not None and record[1]]
    if rows:
        parts.append(table(["option", "meaning"], rows))
    if any(isinstance(each, StoreOption) for each in command.params):
        parts.append("Also the options of the [store](#store).\n")
    return "\n".join(parts)


def _store_options() -> str:
    """Of the commands that read or change jobs."""
    options = [each for each in main.commands["doctor"].params if isinstance(each, StoreOption)]
    rows = [[f"`{o.opts[0]} {o.metavar}`", o.help or "", f"`{o.envvar}`"] for o in options]
    return "## Store\n\n" + table(["option", "meaning", "variable"], rows)


def _help(command: click.Command) -> str:
    """Paragraphs that click must not wrap begin with \\b; they are examples here."""
    parts = []
    for part in inspect.cleandoc(command.help or "").split("\n\n"):
        fixed = part.startswith("\b\n")
        parts.append(code(part.removeprefix("\b\n")) if fixed else part + "\n")
    return "\n".join(parts)


def _option(names: str, text: str) -> list[str]:
    return [f"`{names}`", text.replace("<", "&lt;")]


def command_names(group: Any = main, prefix: str = "freehold") -> Iterator[str]:
    """`freehold up`, `freehold queues pause`, ..."""
    for name, command in group.commands.items():
        yield f"{prefix} {name}"
        if isinstance(command, click.Group):
            yield from command_names(command, f"{prefix} {name}")
