"""`scripts/model`: the model of the lease protocol and its mutants, as a table."""

from __future__ import annotations

import sys
import time

import click
from rich.console import Console
from rich.table import Table

from tests.models.spinning import LARGE, MUTANTS, SMALL, SMALL_MUTANTS, missing_tools, search


@click.command()
@click.option("--small", is_flag=True, help="Only what the tests run too.")
def main(small: bool) -> None:
    """Search every state of the model. Exit code 1: a promise is broken, or a mutant lives."""
    if (missing := missing_tools()) is not None:
        raise click.ClickException(missing)
    worlds = SMALL if small else SMALL | LARGE
    searches = [(name, defines, False) for name, defines in worlds.items()]
    mutants = SMALL_MUTANTS if small else tuple(MUTANTS)
    searches += [(name, (*MUTANTS[name], name), True) for name in mutants]
    table = Table("World or mutant", "States", "Seconds", "Found", "")
    is_good = True
    status = Console(stderr=True)
    for name, defines, must_fail in searches:
        status.print(f"{name}: {' '.join(defines)}", highlight=False)
        began = time.monotonic()
        found = search(*defines)
        good = (found.broken is not None) if must_fail else (found.broken is None)
        good = good and (must_fail or found.is_whole)
        is_good &= good
        seconds = f"{time.monotonic() - began:.1f}"
        text = found.broken or ("everything holds" if found.is_whole else "cut off")
        table.add_row(name, f"{found.states:,}", seconds, text, "ok" if good else "WRONG")
    Console().print(table)
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
