"""`freehold config`: every setting and where it comes from."""

from __future__ import annotations

from dataclasses import asdict
from operator import attrgetter

import click
import msgspec

from freehold.cli.common import as_json, print_json
from freehold.cli.render import show
from freehold.cli.table import ListTable
from freehold.http_auth import shown_token
from freehold.model.limit import QueueRule
from freehold.settings import SETTING_TYPES, Settings, load
from freehold.store.url import redacted


@click.command()
@as_json
def config(as_json: bool) -> None:
    """Show the settings and where each comes from."""
    settings = load()
    origins = settings.origins
    if as_json:
        print_json(
            {
                "settings": {
                    name: {"value": _shown(name, settings), "origin": origins[name]}
                    for name in SETTING_TYPES
                },
                "shards": {
                    name: {"value": redacted(url), "origin": origins[f"shards.{name}"]}
                    for name, url in settings.shards.items()
                },
                "queues": settings.queues,
                "limits": settings.limits,
                "tenants": {name: asdict(count) for name, count in settings.tenants.items()},
                "kinds": {name: msgspec.to_builtins(k) for name, k in settings.kinds.items()},
            }
        )
        return
    table = ListTable("setting", "value", "from", wrapped=("value", "from"))
    for name in SETTING_TYPES:
        table.add_row(name, str(_shown(name, settings)), origins[name])
    for name, url in settings.shards.items():
        table.add_row(f"shards.{name}", redacted(url), origins[f"shards.{name}"])
    for name, rule in settings.queues.items():
        table.add_row(f"queues.{name}", _rule_text(rule), origins[f"queues.{name}"])
    for name, limit in settings.limits.items():
        table.add_row(f"limits.{name}", str(limit), origins[f"limits.{name}"])
    for name, count in settings.tenants.items():
        text = f"{count.default_count} to {count.max_count} workers of its own"
        table.add_row(f"tenants.{name}", text, origins[f"tenants.{name}"])
    for name, kind in settings.kinds.items():
        takes = f"{kind.low_ms:g} to {kind.high_ms:g} ms"
        table.add_row(f"kinds.{name}", f"{takes}, {kind.outcome}", origins[f"kinds.{name}"])
    show(table)


def _rule_text(rule: QueueRule) -> str:
    parts = [] if rule.weight is None else [f"weight {rule.weight:g}"]
    return ", ".join(parts + [str(rule.limit)] * bool(rule.limit)) or "no settings"


def _shown(name: str, settings: Settings) -> object:
    value = attrgetter(name)(settings)
    if name == "http.tokens":
        return [shown_token(text) for text in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, tuple):
        return list(value)
    return redacted(value) if name == "store.url" else value
