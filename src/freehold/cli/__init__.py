"""The command line: `freehold`. Each command is one file; here they come together."""

from __future__ import annotations

import click

from freehold import __version__
from freehold.cli.common import warn_of_unknown_variables
from freehold.cli.errors import EXIT_CODES, ErrorReportingGroup
from freehold.cli.lazy_commands import LazyCommands

_COMMANDS = LazyCommands(
    "demo",
    "up",
    "worker",
    "enqueue",
    "jobs",
    "job",
    "queues",
    "lanes",
    "limits",
    "workers",
    "top",
    "tenants",
    "migrate",
    "doctor",
    "config",
    "bench",
    "simulate",
    "version",
)
_WITH_A_LOG = ("up", "worker")


@click.group(
    cls=ErrorReportingGroup,
    name="freehold",
    commands=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_CODES,
)
@click.version_option(__version__, prog_name="freehold")
@click.pass_context
def main(context: click.Context) -> None:
    """A durable job queue: workers own jobs by lease, in PostgreSQL or SQLite.

    The store is --url, else FREEHOLD_URL, else the app's own, else DATABASE_URL, else the
    file freehold.db in this folder.
    """
    if context.invoked_subcommand not in _WITH_A_LOG:
        warn_of_unknown_variables(lambda text: click.echo(f"freehold: {text}", err=True))
