"""scripts/bench: measure, or write down what was measured.

    scripts/bench [core]  [--rounds 3] [--jobs 50000] [--only raw-sql,freehold] [--quick]
    scripts/bench growth  [--rounds 3] [--jobs 50000] [--only clean,finished] [--quick]
    scripts/bench wide    the same for wider payloads, more processes, tenants, idle workers
    scripts/bench wake    [--rounds 5] [--seconds 5] [--quick]
    scripts/bench report  the tables and charts of docs/performance.md, from bench/results

Without --dsn a PostgreSQL of its own is started. Its figures depend on the machine: read them as
ratios within one run, and run nothing beside.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench import core, growth, report, wake
from bench.measures import Bench
from bench.server import server

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    given = _arguments()
    if given.what == "report":
        report.write(RESULTS)
        return
    out = given.out or RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-{given.what}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    with server(given.dsn) as found, tempfile.TemporaryDirectory(prefix="bench-") as folder:
        bench = Bench(found, Path(folder), given.node)
        only = [name for name in (given.only or "").split(",") if name]
        if given.what == "core":
            sizes = _sized(core.QUICK if given.quick else core.Sizes(), given)
            run = core.measure(bench, sizes, only, given.node, out)
        elif given.what in ("growth", "wide"):
            sized = _sized(growth.QUICK if given.quick else growth.Sizes(), given)
            run = growth.measure(bench, sized, only, out, wide=given.what == "wide")
        else:
            run = wake.measure(
                bench, _sized(wake.QUICK if given.quick else wake.Sizes(), given), out
            )
        document = run.document()
    out.write_text(json.dumps(document, indent=1) + "\n")
    report.show(document)
    sys.exit(1 if run.troubles else 0)


def _sized(sizes: Any, given: argparse.Namespace) -> Any:
    """The sizes with those that were given by hand."""
    names = sizes.__dataclass_fields__
    asked = {name: value for name, value in vars(given).items() if name in names and value}
    return type(sizes)(**{**{name: getattr(sizes, name) for name in names}, **asked})


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "what", nargs="?", default="core", choices=["core", "growth", "wide", "wake", "report"]
    )
    parser.add_argument("--dsn", help="of a role that may create databases")
    parser.add_argument("--node", type=Path, help="where npm installed graphile-worker")
    parser.add_argument("--only", help="names, with commas between them")
    parser.add_argument("--quick", action="store_true", help="tiny: to see whether it works")
    parser.add_argument("--out", type=Path, help="default: bench/results/DATE-WHAT.json")
    for name in (
        "rounds",
        "jobs",
        "finished",
        "scheduled",
        "lanes",
        "behind",
        "tenants",
        "workers",
        "clients",
    ):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--seconds", type=float)
    return parser.parse_args()


if __name__ == "__main__":
    main()
