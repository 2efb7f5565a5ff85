"""What waking idle workers costs those who enqueue: many clients at once, with and without."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.fleet import Trouble
from bench.measures import Bench
from bench.rounds import Run, interleaved
from bench.sides.freehold import FreeholdPostgres

END_SECONDS = 60.0


@dataclass(frozen=True)
class Sizes:
    """How much of everything."""

    rounds: int = 5
    clients: int = 32
    seconds: float = 5.0


QUICK = Sizes(rounds=1, clients=3, seconds=0.5)


def measure(bench: Bench, sizes: Sizes, keep: Path | None) -> Run:
    told = {
        "server": bench.server.described(),
        "round_count": sizes.rounds,
        "clients": sizes.clients,
        "seconds": sizes.seconds,
    }
    run = Run("wake", told)
    works = {
        "with wake-ups": functools.partial(_enqueueing, bench, sizes, True),
        "without": functools.partial(_enqueueing, bench, sizes, False),
    }
    interleaved(run, works, sizes.rounds, keep)
    return run


def _enqueueing(bench: Bench, sizes: Sizes, wakes: bool) -> dict[str, Any]:
    """Clients in processes of their own, all beginning at one moment; a listener hears them."""
    url = bench.fresh(FreeholdPostgres)
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
            client.stdout.readline()  # it is connected, and waits for the word
        rates = []
        for client in clients:
            assert client.stdin is not None
            client.stdin.write("go\n")
            client.stdin.flush()
        for client in clients:
            said, wrong = client.communicate(timeout=END_SECONDS + sizes.seconds)
            if client.returncode:
                raise Trouble(f"an enqueuing client failed: {wrong.strip()[-800:]}")
            rates.append(json.loads(said)["rate"])
    return {"rate": sum(rates)}
