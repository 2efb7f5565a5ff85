"""Logs of long-running commands: lines of text, or JSON for machines."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click
import msgspec

from freehold.cli.text import escaped, escaped_json
from freehold.logs import attempt_fields
from freehold.telemetry import running_tenant

F = TypeVar("F", bound=Callable[..., Any])
_LEVEL_COLORS = {"warning": "yellow", "error": "red", "critical": "red"}
_INDENT = "    "


def log_options(command: F) -> F:
    level = click.option(
        "--log-level",
        type=click.Choice(["debug", "info", "warning", "error"]),
        metavar="LEVEL",
        default="info",
        help="debug, info, warning or error. [default: info]",
    )
    format = click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        metavar="FORMAT",
        default="text",
        help="text or json. [default: text]",
    )
    return level(format(command))


def set_up_logs(level: str, format: str) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(_formatter(format))
    handler.addFilter(_name_attempt)
    handler.addFilter(_name_tenant)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def _name_attempt(record: logging.LogRecord) -> bool:
    """Records of handlers get the fields that Freehold's own records have."""
    if not hasattr(record, "freehold") and (found := attempt_fields()):
        found.pop("tenant", None)  # the next filter adds it, to all records
        record.freehold = found
        record.is_of_handler = True
    return True


def _name_tenant(record: logging.LogRecord) -> bool:
    """Ids of jobs are unique within a tenant only."""
    named = getattr(record, "freehold", {})
    if (tenant := running_tenant.get()) is not None and "tenant" not in named:
        record.freehold = {**named, "tenant": tenant}
        record.is_of_tenant = True
    return True


def _formatter(format: str) -> logging.Formatter:
    if format == "json":
        return _Json()
    return _TerminalText() if sys.stderr.isatty() else _Text()


def _iso_time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


class _Text(logging.Formatter):
    """For files and pipes, with the full time.

    Messages and tracebacks contain the text of handlers. Only a record begins at the first
    column, so that such text cannot pass for one.
    """

    def format(self, record: logging.LogRecord) -> str:
        level = self._level(record.levelname.lower())
        text = escaped(f"{record.name}: {_of_attempt(record)}{record.getMessage()}")
        line = f"{self._time(record)} {level} {text}"
        if not record.exc_info:
            return line
        trace = self.formatException(record.exc_info).split("\n")
        return "\n".join([line, *(f"{_INDENT}{escaped(each)}" for each in trace)])

    def _time(self, record: logging.LogRecord) -> str:
        return _iso_time(record)

    def _level(self, name: str) -> str:
        return f"{name:7}"


def _of_attempt(record: logging.LogRecord) -> str:
    """Freehold's own lines name the job themselves."""
    text = "tenant {tenant}: " if getattr(record, "is_of_tenant", False) else ""
    if getattr(record, "is_of_handler", False):
        text += "job {job} of {task}, attempt {attempt}: "
    return text.format_map(getattr(record, "freehold", {}))


class _TerminalText(_Text):
    """For a terminal: the local time of day, and colours unless NO_COLOR is set."""

    def _time(self, record: logging.LogRecord) -> str:
        return f"{datetime.fromtimestamp(record.created, UTC).astimezone():%H:%M:%S}"

    def _level(self, name: str) -> str:
        text = super()._level(name)
        if name not in _LEVEL_COLORS or os.environ.get("NO_COLOR"):
            return text
        return click.style(text, fg=_LEVEL_COLORS[name])


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        document = {
            "at": _iso_time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _encodable(record.getMessage()),
            **getattr(record, "freehold", {}),
        }
        if record.exc_info:
            document["trace"] = _encodable(self.formatException(record.exc_info))
        return escaped_json(msgspec.json.encode(document).decode())


def _encodable(text: str) -> str:
    """A lone surrogate, which UTF-8 cannot encode, becomes an escape."""
    return text.encode("utf-8", "backslashreplace").decode()
