"""The cost of notifications to producers: many clients at once, with and without them."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.contenders.freehold import FreeholdPostgres
from bench.fleet import MeasurementFailed
from bench.measures import Bench
from bench.rounds import Run, run_interleaved

END_SECONDS = 60.0


@dataclass(frozen=True)
class Sizes:
    """The sizes of a run."""

    rounds: int = 5
    clients: int = 32
    seconds: float = 5.0


QUICK = Sizes(rounds=1, clients=3, seconds=0.5)


def measure(bench: Bench, sizes: Sizes, out: Path | None) -> Run:
    details = {
        "server": bench.server.describe(),
        "round_count": sizes.rounds,
        "clients": sizes.clients,
        "seconds": sizes.seconds,
    }
    run = Run("wake", details)
    measures = {
        "with wake-ups": functools.partial(_enqueue, bench, sizes, True),
        "without": functools.partial(_enqueue, bench, sizes, False),
    }
    run_interleaved(run, measures, sizes.rounds, out)
    return run


def _enqueue(bench: Bench, sizes: Sizes, wakes: bool) -> dict[str, Any]:
    """Each client is a process; all start at the same time, and one listener is connected."""
    url = bench.fresh_store(FreeholdPostgres)
    with bench.server.connect(url) as listener:
        listener.execute("listen freehold_freehold")
        command = [sys.executable, "-m", "bench.producer", url, str(int(wakes)), str(sizes.seconds)]
        clients = [
            subprocess.Popen(
                command,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for _ in range(sizes.clients)
        ]
        for client in clients:
            assert client.stdout is not None
            client.stdout.readline()  # it is connected, and waits for the start
        rates = []
        for client in clients:
            assert client.stdin is not None
            client.stdin.write("go\n")
            client.stdin.flush()
        for client in clients:
            output, errors = client.communicate(timeout=END_SECONDS + sizes.seconds)
            if client.returncode:
                raise MeasurementFailed(f"an enqueuing client failed: {errors.strip()[-800:]}")
            rates.append(json.loads(output)["rate"])
    return {"rate": sum(rates)}
