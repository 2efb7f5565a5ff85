"""Logs of long-running commands: lines for people, or JSON for machines."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click
import msgspec

F = TypeVar("F", bound=Callable[..., Any])


def log_options(command: F) -> F:
    levels = click.Choice(["debug", "info", "warning", "error"])
    level = click.option("--log-level", type=levels, default="info", show_default=True)
    form = click.option(
        "--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True
    )
    return level(form(command))


def set_up_logs(level: str, form: str) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_Json() if form == "json" else _Text())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def _when(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = f"{_when(record)} {record.levelname.lower():7} {record.getMessage()}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        document = {
            "at": _when(record),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "freehold", {}),
        }
        if record.exc_info:
            document["trace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(document).decode()
