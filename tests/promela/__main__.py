"""`scripts/model`: searches the model of the lease protocol and its mutants; prints a table."""

from __future__ import annotations

import sys
import time

import click
from rich.console import Console
from rich.table import Table

from tests.promela.spin import LARGE, MUTANTS, SMALL, SMALL_MUTANTS, missing_tools, search


@click.command()
@click.option("--small", is_flag=True, help="Only the searches of the short form of the tests.")
def main(small: bool) -> None:
    """Search every state of the model. Exit code 1: a violation, or a mutant without one."""
    if (missing := missing_tools()) is not None:
        raise click.ClickException(missing)
    configurations = SMALL if small else SMALL | LARGE
    searches = [(name, defines, False) for name, defines in configurations.items()]
    mutants = SMALL_MUTANTS if small else tuple(MUTANTS)
    searches += [(name, (*MUTANTS[name], name), True) for name in mutants]
    table = Table("Configuration or mutant", "States", "Seconds", "Result", "")
    is_good = True
    status = Console(stderr=True)
    for name, defines, must_fail in searches:
        status.print(f"{name}: {' '.join(defines)}", highlight=False)
        began = time.monotonic()
        found = search(*defines, is_large=name in LARGE)
        good = (found.violated is not None) if must_fail else (found.violated is None)
        good = good and (must_fail or found.is_complete)
        is_good &= good
        seconds = f"{time.monotonic() - began:.1f}"
        text = found.violated or ("all properties hold" if found.is_complete else "cut off")
        table.add_row(name, f"{found.states:,}", seconds, text, "ok" if good else "WRONG")
    Console().print(table)
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
