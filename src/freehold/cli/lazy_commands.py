"""Commands that are read from their file when somebody asks for them.

A worker is started often and should be there at once: what only the demo or the simulation needs
would double the time that it takes.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, MutableMapping

import click


class LazyCommands(MutableMapping[str, click.Command]):
    """By name: the command of this name, in the file of this name."""

    def __init__(self, *names: str) -> None:
        self._read: dict[str, click.Command | None] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> click.Command:
        command = self._read[name]
        if command is None:
            command = getattr(importlib.import_module(f"freehold.cli.{name}"), name)
            self._read[name] = command
        return command

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._read[name] = command

    def __delitem__(self, name: str) -> None:
        del self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)
