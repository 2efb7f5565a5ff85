"""scripts/bench: measure, or write the report of the newest results.

    scripts/bench [core]  [--rounds 3] [--jobs 50000] [--only raw-sql,freehold] [--quick]
    scripts/bench core --against COMMIT [--pairs 10] [--session plain] [--quick]
                          this tree and another commit in alternating pairs
    scripts/bench growth  [--rounds 3] [--jobs 50000] [--only clean,finished] [--quick]
    scripts/bench wide    the same for wider payloads, more processes, tenants, idle workers
    scripts/bench wake    [--rounds 5] [--seconds 5] [--quick]
    scripts/bench mixed   [--rounds 3] [--jobs 50000] [--only freehold,pgqueuer] [--quick]
    scripts/bench reads   [--finished 2000000] [--live 500000] [--queues 200] [--lanes 20000]
                          [--workers 50] [--rounds 50] [--quick]    reads of operators, pages
    scripts/bench flows   [--rounds 3] [--members 1000000] [--fan-in 100000] [--only plain,batch]
                          [--quick]    members of a batch, the last node of a large workflow
    scripts/bench results [--clients 1000] [--ends 10] [--seconds 20] [--quick]
                          callers of one process that wait for results
    scripts/bench report  the tables and charts of docs/performance.md, from bench/results

Without --dsn it starts a PostgreSQL server of its own. The figures depend on the machine: read them
as ratios within one run, and run nothing else meanwhile.
"""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

from bench import core, flows, growth, mixed, reads, report, waiting_callers, wake
from bench.against import checkout, pairs
from bench.fleet import MeasurementFailed
from bench.measures import Bench
from bench.server import server


def main() -> None:
    arguments = _arguments()
    if arguments.case == "report":
        report.write(report.RESULTS)
        return
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, _end)
    if arguments.case in ("reads", "results"):
        case = reads if arguments.case == "reads" else waiting_callers
        sizes = _sizes(case.QUICK if arguments.quick else case.Sizes(), arguments)
        with server(arguments.dsn) as used:
            case.run(used, sizes, _out(arguments, arguments.case))
        return
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        measure = _compare if arguments.against else _measure
        try:
            document, out = measure(arguments, Path(folder))
        except MeasurementFailed as error:
            raise SystemExit(f"bench: {error}") from error
    out.write_text(json.dumps(document, indent=1) + "\n")
    report.show(document)
    sys.stdout.write(f"\nWritten to {out}\n")
    passed = document.get("verdict", {}).get("passed", True)
    sys.exit(1 if document["failures"] or not passed else 0)


def _end(number: int, frame: FrameType | None) -> None:
    """The first signal unwinds the stack, which removes processes, databases and worktrees; later
    ones must not interrupt that."""
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    sys.exit(128 + number)


def _measure(arguments: argparse.Namespace, folder: Path) -> tuple[dict[str, Any], Path]:
    out = _out(arguments, arguments.case)
    settings = pairs.SERVER_SETTINGS if arguments.case == "flows" else {}
    with server(arguments.dsn, settings) as used:
        bench = Bench(used, folder, arguments.node)
        only = [name for name in (arguments.only or "").split(",") if name]
        if arguments.case == "core":
            sizes = _sizes(core.QUICK if arguments.quick else core.Sizes(), arguments)
            run = core.measure(bench, sizes, only, arguments.node, out)
        elif arguments.case in ("growth", "wide"):
            sizes = _sizes(growth.QUICK if arguments.quick else growth.Sizes(), arguments)
            run = growth.measure(bench, sizes, only, out, wide=arguments.case == "wide")
        elif arguments.case == "mixed":
            sizes = _sizes(mixed.QUICK if arguments.quick else mixed.Sizes(), arguments)
            run = mixed.measure(bench, sizes, only, out)
        elif arguments.case == "flows":
            sizes = _sizes(flows.QUICK if arguments.quick else flows.Sizes(), arguments)
            run = flows.measure(bench, sizes, only, out)
        else:
            sizes = _sizes(wake.QUICK if arguments.quick else wake.Sizes(), arguments)
            run = wake.measure(bench, sizes, out)
        return run.document(), out


def _compare(arguments: argparse.Namespace, folder: Path) -> tuple[dict[str, Any], Path]:
    sizes = _sizes(pairs.QUICK if arguments.quick else pairs.Sizes(), arguments)
    out = _out(arguments, f"core-against-{checkout.label(arguments.against)}")
    details = {"command": shlex.join(["scripts/bench", *sys.argv[1:]])}
    with server(arguments.dsn, pairs.SERVER_SETTINGS) as used:
        document = pairs.compare(
            used,
            folder,
            arguments.against,
            arguments.against_python,
            sizes,
            out,
            details,
            arguments.session,
        )
    return document, out


def _out(arguments: argparse.Namespace, name: str) -> Path:
    out: Path = arguments.out or report.RESULTS / f"{datetime.now(UTC):%Y-%m-%d}-{name}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    return out


def _sizes(sizes: Any, arguments: argparse.Namespace) -> Any:
    """The sizes, with those that were given as options."""
    names = sizes.__dataclass_fields__
    given = {name: value for name, value in vars(arguments).items() if name in names and value}
    return type(sizes)(**{**{name: getattr(sizes, name) for name in names}, **given})


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    cases = ["core", "growth", "wide", "wake", "mixed", "flows", "reads", "results", "report"]
    parser.add_argument("case", nargs="?", default="core", choices=cases)
    parser.add_argument("--dsn", help="of a role that may create databases")
    parser.add_argument("--node", type=Path, help="folder in which npm installed graphile-worker")
    parser.add_argument("--only", help="names, separated by commas")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it work?")
    parser.add_argument("--out", type=Path, help="default: bench/results/DATE-CASE.json")
    parser.add_argument("--against", metavar="COMMIT", help="a commit, or the path of a checkout")
    parser.add_argument(
        "--against-python",
        type=Path,
        metavar="PYTHON",
        help="interpreter for --against; default: an environment made from that commit's\n"
        "lock file, or for a path its .venv, or else the current interpreter",
    )
    parser.add_argument(
        "--session", choices=["pipelined", "plain"], help="store.session, for --against"
    )
    for name in (
        "pairs",
        "rounds",
        "jobs",
        "finished",
        "scheduled",
        "lanes",
        "live",
        "queues",
        "behind",
        "tenants",
        "workers",
        "clients",
        "ends",
        "members",
        "fan-in",
    ):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--seconds", type=float)
    arguments = parser.parse_args()
    if arguments.against and arguments.case != "core":
        parser.error("--against measures core only")
    if arguments.session and not arguments.against:
        parser.error("--session is for --against")
    return arguments


if __name__ == "__main__":
    main()
