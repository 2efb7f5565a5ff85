"""Commands that are imported at first use.

Workers are started often and should start quickly. The modules that only the demo or the
simulation needs would double the start-up time.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, MutableMapping

import click


class LazyCommands(MutableMapping[str, click.Command]):
    """Commands by name. ``modules`` names the module of each, which defines it by the same name."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = modules
        self._loaded: dict[str, click.Command | None] = dict.fromkeys(modules)

    def __getitem__(self, name: str) -> click.Command:
        command = self._loaded[name]
        if command is None:
            command = getattr(importlib.import_module(self._modules[name]), name)
            self._loaded[name] = command
        return command

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded)

    def __len__(self) -> int:
        return len(self._loaded)
