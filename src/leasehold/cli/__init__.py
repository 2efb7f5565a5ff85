"""The command line: `leasehold`. Each command is one file; here they come together."""

from __future__ import annotations

import click

from leasehold import __version__
from leasehold.cli.bench import bench
from leasehold.cli.common import tell_strangers
from leasehold.cli.config import config
from leasehold.cli.demo import demo
from leasehold.cli.doctor import doctor
from leasehold.cli.enqueue import enqueue
from leasehold.cli.failing import EXIT_CODES, Commands
from leasehold.cli.job import job
from leasehold.cli.jobs import jobs
from leasehold.cli.lanes import lanes
from leasehold.cli.limits import limits
from leasehold.cli.migrate import migrate
from leasehold.cli.queues import queues
from leasehold.cli.simulate import simulate
from leasehold.cli.tenants import tenants
from leasehold.cli.top import top
from leasehold.cli.up import up
from leasehold.cli.version import version
from leasehold.cli.worker import worker
from leasehold.cli.workers import workers


@click.group(
    cls=Commands,
    name="leasehold",
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
    if context.invoked_subcommand not in (up.name, worker.name):  # these have a log for it
        tell_strangers(lambda text: click.echo(f"leasehold: {text}", err=True))


main.add_command(demo)
main.add_command(up)
main.add_command(worker)
main.add_command(enqueue)
main.add_command(jobs)
main.add_command(job)
main.add_command(queues)
main.add_command(lanes)
main.add_command(limits)
main.add_command(workers)
main.add_command(top)
main.add_command(tenants)
main.add_command(migrate)
main.add_command(doctor)
main.add_command(config)
main.add_command(bench)
main.add_command(simulate)
main.add_command(version)
