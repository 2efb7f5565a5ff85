"""`leasehold version`."""

from __future__ import annotations

import click

from leasehold import __version__
from leasehold.cli.common import as_json, print_json


@click.command()
@as_json
def version(as_json: bool) -> None:
    """Show the version."""
    if as_json:
        print_json({"version": __version__})
    else:
        click.echo(f"leasehold {__version__}")
