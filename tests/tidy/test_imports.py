"""Which module may import which. The table is the rule; docs/architecture.md has the reasons."""

from __future__ import annotations

import ast
import copy
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.tidy.sources import Module, imported_by, imports, modules, strings

#: A part and the parts that it may import. A module belongs to the longest name that fits it.
MAY_IMPORT: dict[str, set[str]] = {
    # The ground: values and rules, which import nothing else of ours.
    "errors": set(),
    "clock": set(),
    "store_health": {"errors"},
    "telemetry": {"store_health"},
    "logs": {"telemetry"},
    "version": set(),
    "exit_codes": set(),
    "decoders": {"fork_safety"},
    "fork_safety": set(),
    "prometheus": {"telemetry"},
    "http_auth": {"errors", "private_folder"},
    "open_files": set(),
    "rare_warning": {"clock", "telemetry"},
    "private_folder": {"errors"},
    "model": {"errors"},
    "value_types": {"decoders", "model"},
    "dependencies": {"errors"},
    "lifespan": set(),
    "signature": {"dependencies", "errors", "model", "value_types"},
    "settings": {"errors", "model"},
    "results": {"errors", "model", "signature", "telemetry"},
    # The client and the worker for their types only.
    "extensions": {"client", "errors", "model", "telemetry", "worker"},
    "tasks": {"errors", "extensions", "lifespan", "model", "results", "signature"},
    # The store: verbs know values and statements; only `open` knows that there are two dialects.
    "store": {"decoders", "errors", "model", "store.verbs"},
    "store.verbs": {"errors", "model", "store"},
    "store.open": {"clock", "errors", "store", "store.postgres", "store.sqlite"},
    # The server's clock decides; ours only measures how long a connection has been borrowed.
    "store.postgres": {
        "clock",
        "errors",
        "fork_safety",
        "model",
        "store",
        "store_health",
        "telemetry",
    },
    "store.sqlite": {"clock", "errors", "fork_safety", "model", "store"},
    # The users of a store, whichever it is.
    "client": {
        "clock",
        "errors",
        "extensions",
        "model",
        "operator",
        "result_watcher",
        "results",
        "store",
        "store.verbs",
        "tasks",
    },
    "result_watcher": {
        "clock",
        "errors",
        "fork_safety",
        "model",
        "rare_warning",
        "store",
        "store_health",
    },
    "event_follower": {"errors", "model"},
    "operator_schedules": {"errors", "model", "store", "store.verbs"},
    "schedules": {"client", "errors", "model", "task_definer", "tasks", "telemetry"},
    "signals": {"client", "errors", "model", "store", "store.verbs"},
    "flows": {"client", "errors", "model", "operations", "signals", "store", "store.verbs"},
    "workflow_nodes": {"errors", "model", "tasks"},
    "workflows": {
        "client",
        "errors",
        "flows",
        "model",
        "results",
        "store",
        "store.verbs",
        "tasks",
        "workflow_nodes",
    },
    "operations": {"errors", "model", "operator_schedules", "store", "store.verbs"},
    "operator": {"operator_schedules", "errors", "model", "operations", "store", "store.verbs"},
    "json_views": {"model", "operator"},
    "manager.process_slots": {"decoders", "fork_safety", "private_folder"},
    # It has no event loop, and so needs a clock of its own.
    "worker.select_server": {"clock", "rare_warning"},
    "worker": {
        "decoders",
        "errors",
        "exit_codes",
        "extensions",
        "http_auth",
        "lifespan",
        "manager.process_slots",
        "model",
        "prometheus",
        "rare_warning",
        "results",
        "settings",
        "signature",
        "store",
        "store.verbs",
        "store_health",
        "tasks",
        "telemetry",
        "value_types",
        "version",
        "worker.select_server",
        "workflow_nodes",
    },
    "tenants": {
        "clock",
        "errors",
        "exit_codes",
        "fork_safety",
        "model",
        "store",
        "store.verbs",
        "store_health",
        "tasks",
        "telemetry",
        "version",
        "worker",
    },
    "manager": {
        "errors",
        "exit_codes",
        "manager.process_slots",
        "model",
        "open_files",
        "rare_warning",
        "store",
        "telemetry",
    },
    # The app puts the parts together.
    "apply_settings": {"errors", "model", "operator", "settings", "telemetry"},
    "simulated_kinds": {"app", "model"},  # the app for its type only: see the test of cycles
    "task_definer": {"client", "errors", "model", "signature", "tasks", "worker"},
    "task_group": {"client", "errors", "model", "schedules", "tasks"},
    "app": {
        "apply_settings",
        "client",
        "errors",
        "exit_codes",
        "extensions",
        "fork_safety",
        "lifespan",
        "model",
        "operator",
        "result_watcher",
        "settings",
        "schedules",
        "simulated_kinds",
        "store",
        "store.open",
        "task_group",
        "telemetry",
        "tenants",
        "worker",
        "workflows",
    },
    # freehold/__init__.py: the public names
    "": {
        "app",
        "client",
        "dependencies",
        "errors",
        "extensions",
        "flows",
        "model",
        "operator",
        "operator_schedules",
        "store",
        "task_group",
        "tasks",
        "tenants",
        "version",
        "worker",
        "workflow_nodes",
        "workflows",
    },
    "testing": {
        "app",
        "client",
        "clock",
        "errors",
        "exit_codes",
        "lifespan",
        "model",
        "signature",
        "store",
        "store.open",
        "tasks",
        "telemetry",
        "tenants",
        "worker",
    },
    # Interfaces.
    "http": {
        "app",
        "clock",
        "decoders",
        "errors",
        "event_follower",
        "http_auth",
        "json_views",
        "model",
        "open_files",
        "operations",
        "operator",
        "operator_schedules",
        "prometheus",
        "rare_warning",
        "settings",
        "store",
        "tasks",
        "telemetry",
    },
    # Pages share the rules of the API: routes, roles, limits, errors.
    "dashboard": {
        "app",
        "clock",
        "errors",
        "http",
        "http_auth",
        "model",
        "operations",
        "operator",
        "settings",
        "store",
        "tasks",
        "telemetry",
        "version",
    },
    # The server has both; the API itself knows no pages.
    "http.server": {
        "app",
        "dashboard",
        "errors",
        "http",
        "http_auth",
        "open_files",
        "rare_warning",
        "settings",
        "telemetry",
    },
    "cli": {
        "",
        "app",
        "client",
        "clock",
        "errors",
        "http.server",
        "http_auth",
        "json_views",
        "logs",
        "manager",
        "manager.process_slots",
        "model",
        "open_files",
        "operator",
        "operator_schedules",
        "settings",
        "store",
        "tasks",
        "telemetry",
        "tenants",
        "worker",
    },
    "__main__": {"cli"},
    "pytest_plugin": {"app", "lifespan", "testing"},
    "contrib": {
        "app",
        "cli",
        "client",
        "clock",
        "errors",
        "extensions",
        "http",
        "model",
        "version",
        "worker",
    },
    "contrib.django": {
        "app",
        "cli",
        "client",
        "clock",
        "dashboard",
        "errors",
        "extensions",
        "fork_safety",
        "http_auth",
        "model",
        "operator",
        "store",
        "tasks",
        "testing",
        "worker",
    },
    # Development tools: simulation, checker, demo, a PostgreSQL server.
    "lab": {
        "app",
        "cli",
        "client",
        "clock",
        "dashboard",
        "decoders",
        "errors",
        "exit_codes",
        "flows",
        "http.server",
        "http_auth",
        "manager",
        "manager.process_slots",
        "model",
        "operator",
        "settings",
        "simulated_kinds",
        "store",
        "store.open",
        "store.verbs",
        "tasks",
        "telemetry",
        "tenants",
        "testing",
        "worker",
        "workflow_nodes",
        "workflows",
    },
}

#: Of the store, these parts import only these modules; a concrete store none of them.
OF_THE_STORE = {
    "": {"types"},
    "cli": {"database", "types", "url"},
    "contrib.django": {"store", "types"},
    "dashboard": {"types"},
    "http": {"types"},
    "client": {"database", "notifications", "statements", "store", "verbs.enqueue"},
    "manager": {"types"},
    "signals": {"statements", "verbs.signals"},
    "operations": {
        "statements",
        "types",
        "verbs.act",
        "verbs.amend",
        "verbs.audit",
        "verbs.bulk",
        "verbs.flow_actions",
        "verbs.flow_members",
        "verbs.flow_waits",
        "verbs.flows",
        "verbs.limits",
        "verbs.operator",
        "verbs.queries",
        "verbs.retention",
        "verbs.schedules",
        "verbs.signals",
        "verbs.workers",
        "verbs.workflows",
    },
    "operator": {
        "statements",
        "types",
        "verbs.audit",
        "verbs.job_log",
        "verbs.limits",
        "verbs.operator",
        "verbs.pause",
        "verbs.queries",
        "verbs.steps",
        "verbs.workers",
    },
    "tenants": {
        "database",
        "notifications",
        "shard",
        "statements",
        "store",
        "types",
        "verbs.tenant_directory",
    },
    "worker": {"database", "notifications", "store", "types", "verbs.claim"},
}


#: What rules need: values, types and arithmetic, none of which does I/O.
PURE = {
    "__future__",
    "collections",
    "cronsim",
    "dataclasses",
    "datetime",
    "difflib",
    "enum",
    "functools",
    "hashlib",
    "math",
    "msgspec",
    "re",
    "types",
    "typing",
    # Reads the time zone database of the machine, as a part of Python's library.
    "zoneinfo",
    "typing_extensions",  # for type checkers only
}


def part_of(name: str) -> str:
    inner = name.removeprefix("freehold").removeprefix(".")
    fitting = [part for part in MAY_IMPORT if inner == part or inner.startswith(f"{part}.")]
    assert fitting, f"{name} belongs to no part: add it to MAY_IMPORT"
    return max(fitting, key=len)


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.path_in_package)
def test_a_module_imports_only_what_its_part_may(module: Module) -> None:
    part = part_of(module.name)
    seen = {part_of(name) for name in imports(module)} - {part}
    assert seen <= MAY_IMPORT[part], (
        f"{module.path_in_package} must not import {seen - MAY_IMPORT[part]}"
    )


def test_the_table_allows_nothing_beyond_the_code() -> None:
    """A rule wider than the code is a rule without a reason."""
    needed: dict[str, set[str]] = {part: set() for part in MAY_IMPORT}
    for module in modules():
        part = part_of(module.name)
        needed[part] |= {part_of(name) for name in imports(module)} - {part}
    unneeded = {
        part: allowed - needed[part]
        for part, allowed in MAY_IMPORT.items()
        if allowed - needed[part]
    }
    assert unneeded == {}


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.path_in_package)
def test_the_store_is_used_through_its_promises(module: Module) -> None:
    part = part_of(module.name)
    allowed = OF_THE_STORE.get(part)
    if allowed is None:
        return
    prefix = "freehold.store."
    seen = {name.removeprefix(prefix) for name in imports(module) if name.startswith(prefix)}
    assert seen <= allowed, (
        f"{module.path_in_package} must not import {seen - allowed} of the store"
    )


def test_the_concrete_stores_are_named_in_one_file() -> None:
    concrete = ("freehold.store.postgres", "freehold.store.sqlite")
    naming = {
        module.path_in_package
        for module in modules()
        if any(name.startswith(concrete) for name in imports(module))
        and not module.name.startswith(concrete)
    }
    assert naming == {"store/open.py"}


def test_the_lab_is_imported_by_nothing_else() -> None:
    """Only the lazily loaded commands name it, by their dotted path."""
    others = [module for module in modules() if part_of(module.name) != "lab"]
    assert {
        m.path_in_package for m in others if any("lab" in n.split(".") for n in imports(m))
    } == set()
    naming = {
        module.path_in_package
        for module in others
        if any("freehold.lab" in text for text in strings(module.tree))
    }
    assert naming <= {"cli/__init__.py"}


def test_databases_are_opened_by_the_app_only() -> None:
    opening = {
        part_of(module.name)
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and node.module == "freehold.store.open"
    }
    assert opening == {"app", "lab", "testing"}


def test_drivers_are_imported_by_their_store_only() -> None:
    homes = {"psycopg": "store/postgres/", "sqlite3": "store/sqlite/"}
    for module in modules():
        for name in _roots(module.tree):
            if name in homes:
                assert module.path_in_package.startswith(homes[name]), (
                    f"{module.path_in_package} imports {name}"
                )


def test_the_model_can_do_no_io() -> None:
    used = {
        root
        for module in modules()
        if part_of(module.name) == "model"
        for root in _roots(module.tree)
    }
    assert used <= PURE | {"freehold"}, used - PURE


def test_there_is_no_import_cycle() -> None:
    """Imports at import time; those for types only, and inside functions, do not count."""
    graph = {module.name: imported_by(_at_import(module.tree)) for module in modules()}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"an import cycle: {' -> '.join(error.args[1])}")


def _roots(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module.partition(".")[0])
    return found


def _at_import(tree: ast.Module) -> ast.Module:
    return _AtImport().visit(copy.deepcopy(tree))  # type: ignore[no-any-return]


class _AtImport(ast.NodeTransformer):
    """Leaves out what does not run when the module is imported."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        return None

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        return None

    def visit_If(self, node: ast.If) -> ast.AST | None:
        is_for_types = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if is_for_types else self.generic_visit(node)
