"""`freehold simulate`: whole fleets on virtual time, from seeds; do they keep their word?"""

from __future__ import annotations

from collections import Counter

import click
from rich.console import Console
from rich.table import Table

from freehold.cli.common import as_json, print_json
from freehold.cli.errors import REFUSED
from freehold.cli.progress import progress
from freehold.lab.simulation.seeds import SeedSummary, run_seeds, smallest
from freehold.lab.simulation.trace import trace_lines

_SHOWN = 5
#: So many runs reach everything that there is to reach; if not, they prove less than they should.
_MANY_SEEDS = 300


@click.command()
@click.option("--seeds", type=click.IntRange(1), default=100, show_default=True)
@click.option("--from", "first", type=click.IntRange(0), default=0, help="The first seed.")
@click.option("--shrink/--no-shrink", default=True, help="Make the first failing run small.")
@as_json
def simulate(seeds: int, first: int, shrink: bool, as_json: bool) -> None:
    """Play random fleets under faults and check every promise.

    Each seed is a program of jobs, workers, operators and faults, on a store in memory and virtual
    time. The same seed gives the same run. Fails if a promise was broken, and tells the story of
    the first such run, made as small as it still fails. Fails too if 300 seeds or more have left
    out a kind of fault, a state, a transition or an event.
    """
    swept = _swept(first, seeds, quiet=as_json)
    story = _story(next(iter(swept.failed)), quiet=as_json) if swept.failed and shrink else []
    if as_json:
        print_json(_document(swept, story))
    else:
        _print(Console(), swept, story)
    if swept.failed or (seeds >= _MANY_SEEDS and swept.missed):
        raise click.exceptions.Exit(REFUSED)


def _swept(first: int, seeds: int, *, quiet: bool) -> SeedSummary:
    with progress("seeds", seeds, quiet=quiet) as tell:

        def after_each(swept: SeedSummary) -> None:
            words = f"{swept.jobs:,} jobs, {sum(swept.faults.values()):,} faults"
            tell(swept.seeds, words, f"{len(swept.failed)} failed" if swept.failed else "")

        return run_seeds(first, seeds, after_each)


def _story(seed: int, *, quiet: bool) -> list[str]:
    with progress(f"making seed {seed} small", quiet=quiet):
        return list(trace_lines(smallest(seed)))


def _document(swept: SeedSummary, story: list[str]) -> dict[str, object]:
    return {
        "seeds": swept.seeds,
        "tenants": swept.tenants,
        "jobs": swept.jobs,
        "attempts": swept.attempts,
        "statements": swept.statements,
        "faults": dict(swept.faults),
        "states": dict(swept.states),
        "transitions": dict(swept.transitions),
        "events": dict(swept.events),
        "missed": swept.missed,
        "failed": {str(seed): texts for seed, texts in swept.failed.items()},
        "story": story,
    }


def _print(console: Console, swept: SeedSummary, story: list[str]) -> None:
    for name, counter in (
        ("faults that happened", swept.faults),
        ("states reached", swept.states),
        ("transitions", swept.transitions),
        ("events", swept.events),
    ):
        console.print(_table(name, counter))
    console.print(
        f"{swept.seeds:,} seeds, {swept.tenants:,} tenants, {swept.jobs:,} jobs, "
        f"{swept.attempts:,} attempts, {swept.statements:,} statements, "
        f"violations in {len(swept.failed):,} seeds"
    )
    if swept.missed:
        console.print(f"never reached: {', '.join(swept.missed)}")
    for seed, texts in list(swept.failed.items())[:_SHOWN]:
        again = f"`freehold simulate --from {seed} --seeds 1`"
        console.print(f"seed {seed}: {texts[0]} ({again})", markup=False, soft_wrap=True)
    for line in story:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _table(name: str, counter: Counter[str]) -> Table:
    table = Table(name, "times", title_justify="left")
    table.columns[1].justify = "right"
    for each, count in sorted(counter.items()):
        table.add_row(each, f"{count:,}")
    return table
