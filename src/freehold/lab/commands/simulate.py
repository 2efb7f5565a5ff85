"""`freehold simulate`: fleets of workers on virtual time, from seeds, under faults."""

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
from freehold.model.plural import count

_SHOWN_FAILURES = 5
#: This many runs reach every fault, state, transition and event; otherwise they prove too little.
_MANY_SEEDS = 300


@click.command()
@click.option("--seeds", type=click.IntRange(1), default=100, show_default=True)
@click.option("--from", "first", type=click.IntRange(0), default=0, help="The first seed.")
@click.option("--shrink/--no-shrink", default=True, help="Shrink the first failing run.")
@as_json
def simulate(seeds: int, first: int, shrink: bool, as_json: bool) -> None:
    """Simulate fleets under faults and check them.

    Each seed is a scenario of jobs, workers, operators and faults, on a store in memory and
    virtual time. The same seed gives the same run. The command fails if a guarantee was violated,
    and prints the trace of the first such run, shrunk as far as it still fails. It also fails if
    300 seeds or more did not reach a kind of fault, a state, a transition or an event.
    """
    summary = _summary(first, seeds, quiet=as_json)
    trace = _trace(next(iter(summary.failed)), quiet=as_json) if summary.failed and shrink else []
    if as_json:
        print_json(_document(summary, trace))
    else:
        _print(Console(), summary, trace)
    if summary.failed or (seeds >= _MANY_SEEDS and summary.missed):
        raise click.exceptions.Exit(REFUSED)


def _summary(first: int, seeds: int, *, quiet: bool) -> SeedSummary:
    with progress("seeds", seeds, quiet=quiet) as report:

        def after_each(summary: SeedSummary) -> None:
            faults = sum(summary.faults.values())
            note = f"{count(summary.jobs, 'job')}, {count(faults, 'fault')}"
            report(summary.seeds, note, f"{len(summary.failed)} failed" if summary.failed else "")

        return run_seeds(first, seeds, after_each)


def _trace(seed: int, *, quiet: bool) -> list[str]:
    with progress(f"shrinking seed {seed}", quiet=quiet):
        return list(trace_lines(smallest(seed)))


def _document(summary: SeedSummary, trace: list[str]) -> dict[str, object]:
    return {
        "seeds": summary.seeds,
        "tenants": summary.tenants,
        "jobs": summary.jobs,
        "attempts": summary.attempts,
        "statements": summary.statements,
        "faults": dict(summary.faults),
        "states": dict(summary.states),
        "transitions": dict(summary.transitions),
        "events": dict(summary.events),
        "missed": summary.missed,
        "failed": {str(seed): texts for seed, texts in summary.failed.items()},
        "trace": trace,
    }


def _print(console: Console, summary: SeedSummary, trace: list[str]) -> None:
    for name, counter in (
        ("faults that happened", summary.faults),
        ("states reached", summary.states),
        ("transitions", summary.transitions),
        ("events", summary.events),
    ):
        console.print(_table(name, counter))
    numbers = (
        (name, getattr(summary, f"{name}s")) for name in ("seed", "tenant", "job", "attempt")
    )
    console.print(
        f"{', '.join(count(number, name) for name, number in numbers)}, "
        f"{count(summary.statements, 'statement')}, "
        f"violations in {count(len(summary.failed), 'seed')}"
    )
    if summary.missed:
        console.print(f"never reached: {', '.join(summary.missed)}")
    for seed, texts in list(summary.failed.items())[:_SHOWN_FAILURES]:
        again = f"`freehold simulate --from {seed} --seeds 1`"
        console.print(f"seed {seed}: {texts[0]} ({again})", markup=False, soft_wrap=True)
    for line in trace:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _table(name: str, counter: Counter[str]) -> Table:
    table = Table(name, "times", title_justify="left")
    table.columns[1].justify = "right"
    for each, number in sorted(counter.items()):
        table.add_row(each, f"{number:,}")
    return table
