"""Time and chance come in from outside; these are the doors, and there are no others."""

from __future__ import annotations

import ast

from tests.tidy.sources import modules

#: file -> {what it reads: why it may}. Nothing may be listed that is not there.
DOORS: dict[str, dict[str, str]] = {
    "clock.py": {
        "time.time_ns": "the machine's clock, which is SQLite's",
        "time.monotonic": "the machine's stop watch, for whoever measures outside a loop",
    },
    "telemetry.py": {
        "time.monotonic": "how long statements take: a loop's clock may go by milliseconds",
    },
    "worker/worker.py": {
        "random.random": "the default chance; tests and simulations hand in their own",
        "secrets.token_hex": "an owner's name must never come again",
    },
    "tenants/host.py": {
        "random.random": "the default chance of all its workers",
    },
    "worker/execution/process_child.py": {
        "time.monotonic": "a child process has no event loop to ask how long a handler ran",
    },
    "worker/job_log/child_pipe.py": {
        "time.monotonic": "the same",
    },
    "manager/manager.py": {
        "secrets.token_hex": "a manager's name must never come again",
    },
    "store/open.py": {
        "secrets.token_hex": "a store that is put aside must never meet another",
    },
    "cli/up.py": {
        "random.random": "the chance that spreads the sweeps of the service",
    },
    "testing/harness.py": {
        "random.Random": "the chance of a test, from a seed",
    },
    "lab/simulation/scenario.py": {
        "random.Random": "a program, from a seed",
    },
    "lab/simulation/network.py": {
        "random.Random": "what happens on the way to the store, from a seed",
    },
    "lab/simulation/worker_machines.py": {
        "random.Random": "the chance of a worker, from a seed",
    },
    "tenants/move.py": {
        "time.sleep": "leases end when they end, and tell nobody outside their worker",
    },
    "devpostgres.py": {
        "time.monotonic": "how long a server may take to start",
        "time.sleep": "a starting server tells nobody when it is ready",
    },
    "cli/top.py": {
        "time.sleep": "the pace of the picture, for the person who watches",
    },
    "lab/demo/view.py": {
        "time.strftime": "the time beside each line of the demo's story",
    },
}

_MODULES = {"time", "random", "secrets", "uuid"}
_NOW = {
    ("datetime", "now"),
    ("datetime", "utcnow"),
    ("datetime", "today"),
    ("date", "today"),
    ("os", "urandom"),
    ("os", "getrandom"),
}


def test_clocks_and_chance_are_read_behind_these_doors_only() -> None:
    found = {
        module.place: names for module in modules() if (names := _reads(module.tree, module.name))
    }
    assert found == {place: set(names) for place, names in DOORS.items()}


def test_only_workers_and_their_manager_ask_the_event_loop_for_the_time() -> None:
    """It is monotonic and a test can replace it; but who is not on a loop should not need one."""
    asking = {
        module.place
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and node.attr == "time" and _is_loop(node.value)
    }
    assert all(place.startswith(("worker/", "manager/")) for place in asking), asking


def _reads(tree: ast.AST, name: str) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.module not in _MODULES, f"{name}: import {node.module} as a whole"
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            holder = ast.unparse(node.value).rpartition(".")[2]
            if holder in _MODULES or (holder, node.attr) in _NOW:
                found.add(f"{holder}.{node.attr}")
    return found


def _is_loop(node: ast.expr) -> bool:
    text = ast.unparse(node)
    return text.endswith(("loop", "get_running_loop()"))
