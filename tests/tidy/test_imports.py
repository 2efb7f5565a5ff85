"""Who may import whom. The table is the rule; docs/architecture.md tells the reasons."""

from __future__ import annotations

import ast
import copy
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.tidy.sources import Module, imported_by, imports, modules

#: A part and the parts that it may see. The longest name that fits a module is its part.
MAY_SEE: dict[str, set[str]] = {
    # The ground: values and rules, nothing of ours below them.
    "errors": set(),
    "clock": set(),
    "telemetry": set(),
    "release": set(),
    "exits": set(),
    "typed": set(),
    "locks": set(),
    "seats": {"errors", "typed"},
    "exposition": {"telemetry"},
    "access": {"errors"},
    "model": {"errors"},
    "signature": {"errors", "model", "typed"},
    "settings": {"errors", "model"},
    "tasks": {"errors", "model", "signature"},
    # The store: verbs know values and steps; only `opening` knows that there are two dialects.
    "store": {"errors", "model", "typed"},
    "store.opening": {"clock", "errors", "store", "store.postgres", "store.sqlite"},
    # Decides by its server's clock; ours tells only for how long a connection has been out.
    "store.postgres": {"clock", "errors", "locks", "model", "telemetry", "store"},
    "store.sqlite": {"clock", "errors", "locks", "model", "store"},
    # Those who use a store, whichever it is.
    "client": {"clock", "errors", "model", "operate", "store"},
    "operate": {"errors", "model", "store"},
    "documents": {"model", "operate"},
    "worker": {
        "access",
        "errors",
        "exits",
        "exposition",
        "model",
        "release",
        "seats",
        "settings",
        "signature",
        "store",
        "tasks",
        "telemetry",
        "typed",
    },
    "manager": {"errors", "exits", "model", "seats", "store", "telemetry"},
    "tenancy": {"clock", "errors", "locks", "model", "store", "telemetry"},
    # What puts the parts together.
    "rules": {"model", "operate", "settings"},
    "kinds": {"app", "model"},  # the app for its type only: see the test of circles
    "app": {
        "client",
        "errors",
        "kinds",
        "locks",
        "model",
        "operate",
        "rules",
        "settings",
        "signature",
        "store",
        "store.opening",
        "tasks",
        "tenancy",
        "worker",
    },
    # freehold/__init__.py: the public names
    "": {"app", "client", "errors", "model", "release", "tasks", "worker"},
    "testing": {
        "app",
        "client",
        "clock",
        "errors",
        "exits",
        "model",
        "signature",
        "store",
        "store.opening",
        "tasks",
        "telemetry",
        "worker",
    },
    # The proof: what was recorded against what is stored, and fleets that record it.
    "proof": {"model", "store", "typed"},
    "simulation": {
        "app",
        "client",
        "clock",
        "errors",
        "exits",
        "manager",
        "model",
        "operate",
        "proof",
        "seats",
        "store",
        "store.opening",
        "tasks",
        "telemetry",
        "tenancy",
        "testing",
        "worker",
    },
    # The faces.
    "demo": {"app", "kinds", "manager", "model", "settings", "store", "typed"},
    "devpostgres": {"errors"},
    "http": {
        "access",
        "app",
        "clock",
        "documents",
        "errors",
        "exposition",
        "model",
        "operate",
        "settings",
        "store",
        "tasks",
        "telemetry",
        "typed",
    },
    "cli": {
        "",
        "access",
        "app",
        "client",
        "clock",
        "demo",
        "devpostgres",
        "documents",
        "errors",
        "http",
        "manager",
        "model",
        "operate",
        "seats",
        "settings",
        "simulation",
        "store",
        "tasks",
        "telemetry",
        "tenancy",
        "worker",
    },
    "__main__": {"cli"},
}

#: Of the store, these parts see only the values and promises, never the verbs' statements.
OF_THE_STORE = {
    "cli": {"address", "contract", "database"},
    "http": {"contract"},
    "demo": {"contract"},
    "client": {"crier", "database", "enqueueing", "faces", "steps"},
    "manager": {"contract"},
    "operate": {
        "contract",
        "faces",
        "limiting",
        "noting",
        "operating",
        "pausing",
        "reading",
        "registering",
        "steps",
    },
    "tenancy": {
        "contract",
        "database",
        "directory",
        "faces",
        "following",
        "places",
        "relocating",
        "steps",
    },
    "worker": {"chores", "contract", "database", "faces", "hints", "place", "places"},
}


#: What rules need: values, types and arithmetic. None of it can touch the world.
PURE = {
    "__future__",
    "collections",
    "dataclasses",
    "datetime",
    "difflib",
    "enum",
    "hashlib",
    "math",
    "msgspec",
    "re",
    "types",
    "typing",
}


def part_of(name: str) -> str:
    inner = name.removeprefix("freehold").removeprefix(".")
    fitting = [part for part in MAY_SEE if inner == part or inner.startswith(f"{part}.")]
    assert fitting, f"{name} belongs to no part: give it a place in MAY_SEE"
    return max(fitting, key=len)


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.place)
def test_a_module_sees_only_what_its_part_may_see(module: Module) -> None:
    part = part_of(module.name)
    seen = {part_of(name) for name in imports(module)} - {part}
    assert seen <= MAY_SEE[part], f"{module.place} must not import {seen - MAY_SEE[part]}"


def test_the_table_allows_nothing_that_nobody_needs() -> None:
    """A rule wider than the code is a rule that nobody has thought about."""
    needed: dict[str, set[str]] = {part: set() for part in MAY_SEE}
    for module in modules():
        part = part_of(module.name)
        needed[part] |= {part_of(name) for name in imports(module)} - {part}
    unneeded = {
        part: allowed - needed[part] for part, allowed in MAY_SEE.items() if allowed - needed[part]
    }
    assert unneeded == {}


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.place)
def test_the_store_is_seen_through_its_promises(module: Module) -> None:
    part = part_of(module.name)
    allowed = OF_THE_STORE.get(part)
    if allowed is None:
        return
    prefix = "freehold.store."
    seen = {name.removeprefix(prefix) for name in imports(module) if name.startswith(prefix)}
    assert seen <= allowed, f"{module.place} must not import {seen - allowed} of the store"


def test_the_concrete_stores_are_named_in_one_place() -> None:
    concrete = ("freehold.store.postgres", "freehold.store.sqlite")
    naming = {
        module.place
        for module in modules()
        if any(name.startswith(concrete) for name in imports(module))
        and not module.name.startswith(concrete)
    }
    assert naming == {"store/open.py"}


def test_databases_are_opened_by_the_app_only() -> None:
    opening = {
        part_of(module.name)
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and node.module == "freehold.store.open"
    }
    assert opening == {"app", "simulation", "testing"}


def test_drivers_are_imported_by_their_store_only() -> None:
    homes = {"psycopg": "store/postgres/", "sqlite3": "store/sqlite/"}
    for module in modules():
        for name in _roots(module.tree):
            if name in homes:
                assert module.place.startswith(homes[name]), f"{module.place} imports {name}"


def test_the_model_can_do_no_io() -> None:
    used = {
        root
        for module in modules()
        if part_of(module.name) == "model"
        for root in _roots(module.tree)
    }
    assert used <= PURE | {"freehold"}, used - PURE


def test_no_imports_in_a_circle() -> None:
    """What is imported when a module is; types only, and inside functions, do not count."""
    graph = {module.name: imported_by(_at_import(module.tree)) for module in modules()}
    try:
        tuple(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' -> '.join(error.args[1])}")


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
