"""`freehold version`."""

from __future__ import annotations

import click

from freehold import __version__
from freehold.cli.common import as_json, print_json


@click.command()
@as_json
def version(as_json: bool) -> None:
    """Show the version."""
    if as_json:
        print_json({"version": __version__})
    else:
        click.echo(f"freehold {__version__}")
