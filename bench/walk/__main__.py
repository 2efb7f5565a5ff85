"""scripts/walk: print the functions that one job passes, in order, with their files.

    scripts/walk                      all walks on both stores: the number of functions and modules
    scripts/walk plain                one walk: plain, expired, cancel, tenant or http
    scripts/walk --store postgres     on one store only
    scripts/walk --against COMMIT     beside the figures of another commit

A walk begins with a call and ends when the job's row is stored; what a process does once, when it
starts, is left out. `bench/walk/program.py` says where each walk begins and ends.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.against.checkout import Checkout, copy_harness, other, this_tree
from bench.fleet import Command, MeasurementFailed, run
from bench.server import Server, server
from bench.walk.program import TOKEN

WALKS = ("plain", "expired", "cancel", "tenant", "http")
STORES = ("sqlite", "postgres")
#: How often each walk is traced: see `bench.walk.program`.
REPEATS = 6
Function = tuple[str, str]


def main() -> None:
    arguments = _arguments()
    chosen = [arguments.walk] if arguments.walk else WALKS
    stores = [arguments.store] if arguments.store else STORES
    try:
        with _programs(arguments.against) as (folder, programs), server(arguments.dsn) as used:
            for store in stores:
                for walk in chosen:
                    traced = [_trace(each, walk, store, used, folder) for each in programs]
                    if arguments.walk:
                        _print_functions(traced[0])
                    _print_sums(f"{walk}, {store}", programs, traced)
    except MeasurementFailed as error:
        raise SystemExit(f"walk: {error}") from error


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/walk", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("walk", nargs="?", choices=WALKS)
    parser.add_argument("--store", choices=STORES)
    parser.add_argument("--against", metavar="COMMIT", help="a commit, or the path of a checkout")
    parser.add_argument("--dsn", help="of a role that may create databases")
    return parser.parse_args()


@contextmanager
def _programs(against: str | None) -> Iterator[tuple[Path, list[Checkout]]]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="walk-")))
        harness = copy_harness(folder)
        programs = [this_tree("this", folder, harness)]
        if against:
            programs.append(stack.enter_context(other(against, None, folder, harness)))
        yield folder, programs


def _trace(program: Checkout, walk: str, store: str, used: Server, folder: Path) -> list[Function]:
    """The functions of one walk, on an empty store."""
    with tempfile.TemporaryDirectory(dir=folder) as files:
        url = used.recreate(f"walk_{program.name}") if store == "postgres" else f"{files}/walk.db"
        prefix = program.package.upper()
        words = [program.package, walk, url, str(REPEATS), files]
        command = Command(
            f"{program.name} ({program.package}) {walk} on {store}",
            [str(program.python), "-m", "bench.walk.program", *words],
            env={
                **program.environment(),
                f"{prefix}_WORKERS_LEASE_TIMEOUT_SECONDS": "3",
                f"{prefix}_HTTP_TOKENS": "admin:env:WALK_TOKEN",
                "WALK_TOKEN": TOKEN,
            },
            cwd=program.harness,
        )
        return [(file, name) for file, name in run(command)["functions"]]


def _print_functions(functions: list[Function]) -> None:
    width = max(len(file) for file, _ in functions)
    before = ""
    for file, name in functions:
        sys.stdout.write(f"{file if file != before else '':{width}}  {name}\n")
        before = file


def _print_sums(title: str, programs: list[Checkout], traced: list[list[Function]]) -> None:
    sums = [(len({file for file, _ in each}), len(each)) for each in traced]
    line = ", ".join(
        f"{program.name} {modules} modules {functions} functions"
        for program, (modules, functions) in zip(programs, sums, strict=True)
    )
    if len(sums) == 2:
        (modules, functions), (other_modules, other_functions) = sums
        line += f": {modules / other_modules:.2f} and {functions / other_functions:.2f} of it"
    sys.stdout.write(f"{title}: {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
