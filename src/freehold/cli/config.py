"""`freehold config`: every setting with where it came from."""

from __future__ import annotations

import click
import msgspec
from rich.table import Table

from freehold.cli.common import as_json, print_json
from freehold.cli.render import show
from freehold.http_auth import shown_token
from freehold.settings import Settings, load
from freehold.store.url import redacted


@click.command()
@as_json
def config(as_json: bool) -> None:
    """Show the settings in force here, each with where it came from."""
    settings = load()
    if as_json:
        print_json(
            {
                "settings": {
                    name: {"value": _shown(name, settings), "origin": value.origin}
                    for name, value in settings.values.items()
                },
                "places": {
                    name: {"value": redacted(value.value), "origin": value.origin}
                    for name, value in settings.places.items()
                },
                "kinds": {name: msgspec.to_builtins(k) for name, k in settings.kinds.items()},
            }
        )
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("setting", "value", "from"):
        table.add_column(heading)
    for name, value in settings.values.items():
        table.add_row(name, str(_shown(name, settings)), value.origin)
    for name, value in settings.places.items():
        table.add_row(f"places.{name}", redacted(value.value), value.origin)
    for name, kind in settings.kinds.items():
        takes = f"{kind.low_ms:g} to {kind.high_ms:g} ms"
        table.add_row(f"kinds.{name}", f"{takes}, {kind.outcome}", "")
    show(table)


def _shown(name: str, settings: Settings) -> object:
    value = settings[name]
    if name == "http.tokens":
        return [shown_token(text) for text in value]
    return redacted(value) if name == "store.url" else value
