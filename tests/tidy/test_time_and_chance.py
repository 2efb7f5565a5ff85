"""Clocks and random numbers are passed in; only these files read them."""

from __future__ import annotations

import ast

from tests.tidy.sources import modules

#: file -> {call: reason}. Each entry must be needed.
READERS: dict[str, dict[str, str]] = {
    "clock.py": {
        "time.time_ns": "the clock of the machine, which is that of SQLite",
        "time.monotonic": "durations outside an event loop",
    },
    "telemetry.py": {
        "time.monotonic": "durations of statements: a loop may count in milliseconds",
    },
    "http_auth.py": {
        "secrets.token_urlsafe": "the token that the API makes itself",
    },
    "dashboard/visitor.py": {
        "secrets.token_urlsafe": "the cookie of a session",
    },
    "worker/worker.py": {
        "random.random": "the default; tests and simulations pass their own",
        "secrets.token_hex": "the name of an owner must be unique for ever",
    },
    "tenants/host.py": {
        "random.random": "the default for all its workers",
    },
    "worker/execution/process_child.py": {
        "time.monotonic": "a child process has no event loop",
    },
    "worker/job_log/child_pipe.py": {
        "time.monotonic": "the same reason",
    },
    "manager/manager.py": {
        "secrets.token_hex": "the name of a manager must be unique for ever",
    },
    "store/open.py": {
        "secrets.token_hex": "the name of a scratch store must be unique",
    },
    "cli/up.py": {
        "random.random": "spreads the sweeps of the service",
    },
    "testing/harness.py": {
        "random.Random": "seeded",
    },
    "lab/simulation/everyday_plans.py": {
        "random.Random": "seeded",
    },
    "lab/simulation/flow_plans.py": {
        "random.Random": "seeded",
    },
    "lab/simulation/link_noise.py": {
        "random.Random": "seeded",
    },
    "lab/simulation/tenant_plans.py": {
        "random.Random": "seeded",
    },
    "lab/simulation/scenario.py": {
        "random.Random": "seeded",
    },
    "lab/simulation/step_plans.py": {
        "random.Random": "seeded",
    },
    "lab/simulation/network.py": {
        "random.Random": "seeded",
    },
    "lab/simulation/worker_machines.py": {
        "random.Random": "seeded",
    },
    "tenants/move.py": {
        "time.sleep": "waits for leases to end, which sends no notification",
    },
    "lab/server_account.py": {
        "secrets.token_urlsafe": "the password of a server",
    },
    "lab/devpostgres.py": {
        "time.monotonic": "the time limit of a starting server",
        "time.sleep": "a starting server sends no signal when it is ready",
    },
    "cli/top.py": {
        "time.sleep": "the refresh interval of the screen",
    },
    "lab/demo/view.py": {
        "time.strftime": "the time beside each line of the demo",
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


def test_only_these_files_read_clocks_and_random_numbers() -> None:
    found = {
        module.path_in_package: names
        for module in modules()
        if (names := _reads(module.tree, module.name))
    }
    assert found == {path: set(names) for path, names in READERS.items()}


def test_only_workers_tenants_managers_and_waits_read_the_clock_of_the_event_loop() -> None:
    """It is monotonic, and tests can replace it; code outside a loop should not need one."""
    asking = {
        module.path_in_package
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute) and node.attr == "time" and _is_loop(node.value)
    }
    parts = ("worker/", "tenants/", "manager/", "store_health.py", "store/postgres/async_pool.py")
    assert all(path.startswith(parts) for path in asking), asking


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
