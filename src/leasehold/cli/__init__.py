"""The command line: `leasehold`. Each command is one file; here they come together."""

from __future__ import annotations

import click

from leasehold import __version__
from leasehold.cli.common import tell_strangers
from leasehold.cli.failing import EXIT_CODES, Commands
from leasehold.cli.files import CommandFiles

_COMMANDS = CommandFiles(
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
    cls=Commands,
    name="leasehold",
    commands=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_CODES,
)
@click.version_option(__version__, prog_name="leasehold")
@click.pass_context
def main(context: click.Context) -> None:
    """A durable job queue: workers own jobs by lease, in PostgreSQL or SQLite.

    The store is --url, else LEASEHOLD_URL, else the app's own, else DATABASE_URL, else the
    file leasehold.db in this folder.
    """
    if context.invoked_subcommand not in _WITH_A_LOG:
        tell_strangers(lambda text: click.echo(f"leasehold: {text}", err=True))
