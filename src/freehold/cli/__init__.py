"""The command line, `freehold`: one module for each command, joined here."""

from __future__ import annotations

import click

from freehold import __version__
from freehold.cli.common import warn_of_unknown_variables
from freehold.cli.errors import EXIT_CODES, ErrorReportingGroup
from freehold.cli.lazy_commands import LazyCommands

#: Development tools stand in `lab`, which nothing but this table refers to.
_COMMANDS = LazyCommands(
    {
        "demo": "freehold.lab.commands.demo",
        "up": "freehold.cli.up",
        "worker": "freehold.cli.worker",
        "enqueue": "freehold.cli.enqueue",
        "jobs": "freehold.cli.jobs",
        "job": "freehold.cli.job_edits",
        "failures": "freehold.cli.failures",
        "queues": "freehold.cli.queues",
        "lanes": "freehold.cli.lanes",
        "limits": "freehold.cli.limits",
        "schedules": "freehold.cli.schedules",
        "signals": "freehold.cli.signals",
        "signal": "freehold.cli.signals",
        "flows": "freehold.cli.flows",
        "flow": "freehold.cli.flows",
        "batches": "freehold.cli.flows",
        "workers": "freehold.cli.workers",
        "top": "freehold.cli.top",
        "bulk": "freehold.cli.bulk",
        "retention": "freehold.cli.retention",
        "audit": "freehold.cli.audit",
        "tenants": "freehold.cli.tenants",
        "migrate": "freehold.cli.migrate",
        "doctor": "freehold.cli.doctor",
        "config": "freehold.cli.config",
        "bench": "freehold.lab.commands.bench",
        "simulate": "freehold.lab.commands.simulate",
        "version": "freehold.cli.version",
    }
)
#: These commands log such warnings themselves.
_LOGGING_COMMANDS = ("up", "worker")


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

    The store is --url, else FREEHOLD_URL, else the app's own, else store.url of
    freehold.toml, else DATABASE_URL, else the file freehold.db in this folder.
    """
    if context.invoked_subcommand not in _LOGGING_COMMANDS:
        warn_of_unknown_variables(lambda text: click.echo(f"freehold: {text}", err=True))
