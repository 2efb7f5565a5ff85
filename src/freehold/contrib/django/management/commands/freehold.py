"""`manage.py freehold worker|up|jobs|...`: Freehold's command line on the project's own store."""

from __future__ import annotations

import os
import sys
from argparse import REMAINDER, ArgumentParser
from pathlib import Path
from typing import Any

import click
from django.core.management.base import BaseCommand, CommandError

from freehold.cli import main
from freehold.contrib.django.worker_app import freehold_aliases
from freehold.errors import FreeholdError

_APPS = "freehold.contrib.django.worker_app"
#: Options of `manage.py` itself, which it has read already.
_OF_DJANGO = ("--settings", "--pythonpath")
#: Variables that choose a store. The project's settings choose it here.
_STORE_VARIABLES = ("FREEHOLD_URL", "FREEHOLD_SCHEMA")


class Command(BaseCommand):
    help = "Runs workers, and shows and changes jobs: see `manage.py freehold --help`."
    requires_system_checks: tuple[str, ...] = ()

    def run_from_argv(self, argv: list[str]) -> None:
        """With the arguments as they are: Freehold's command line reads them, not Django's."""
        try:
            arguments = self._prepared(argv[2:])
        except CommandError as error:
            self.stderr.write(f"{type(error).__name__}: {error}")
            sys.exit(error.returncode)
        main.main(arguments, prog_name=f"{Path(argv[0]).name} freehold")

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("arguments", nargs=REMAINDER)

    def handle(self, *args: Any, **options: Any) -> None:
        """For `call_command`: the program goes on, also after an error."""
        arguments = self._prepared(options["arguments"])
        try:
            code = click.Group.main(main, arguments, "manage.py freehold", standalone_mode=False)
        except click.ClickException as error:
            raise CommandError(error.format_message()) from error
        except FreeholdError as error:
            raise CommandError(str(error)) from error
        if code:
            raise CommandError(f"freehold ended with exit code {code}", returncode=int(code))

    def _prepared(self, arguments: list[str]) -> list[str]:
        rest, alias = _without_options(arguments)
        aliases = freehold_aliases()
        if alias is None and len(aliases) == 1:
            (alias,) = aliases
        alias = alias or "default"
        if not aliases:
            raise CommandError(
                'TASKS has no backend of Freehold: set "BACKEND" of one of them to '
                '"freehold.contrib.django.FreeholdBackend"'
            )
        if alias not in aliases:
            raise CommandError(
                f"TASKS has no backend {alias!r} of Freehold: choose one with --backend; it has "
                f"{', '.join(aliases)}"
            )
        for name in _STORE_VARIABLES:
            if os.environ.pop(name, None) is not None:
                self.stderr.write(f"{name} is ignored: the store is that of TASKS[{alias!r}]")
        os.environ["FREEHOLD_APP"] = f"{_APPS}:{alias}"
        _pass_path_on()
        return rest


def _without_options(arguments: list[str]) -> tuple[list[str], str | None]:
    """Without the options of Django, and without --backend before the command."""
    rest: list[str] = []
    alias: str | None = None
    given = iter(arguments)
    for each in given:
        name, has_value, value = each.partition("=")
        is_alias = name == "--backend" and not any(not a.startswith("-") for a in rest)
        if name not in _OF_DJANGO and not is_alias:
            rest.append(each)
            continue
        value = value if has_value else next(given, "")
        alias = value if is_alias else alias
    return rest, alias


def _pass_path_on() -> None:
    """Workers that `up` starts import the project from where `manage.py` is, as this process."""
    folder = sys.path[0] if sys.path else ""
    if folder and Path(folder).is_dir() and Path(folder) != Path.cwd():
        paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
