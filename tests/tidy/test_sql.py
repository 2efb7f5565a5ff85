"""SQL stands in .sql files, one statement each, with the same names in both stores."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from freehold.lab.simulation.adversarial_claims import CLAIMS, ENQUEUES
from freehold.store.sqlfiles import (
    Property,
    load_migrations,
    load_statements,
    properties_of,
    statements_with,
)
from freehold.store.stage_sql import STAGE_SQL
from tests.stores import TABLES
from tests.tidy.sources import PACKAGE, STORES, modules, strings

#: SQL about sessions, transactions, migrations and the server itself: no statement of a verb. Each
#: entry must be needed.
SQL_IN_PYTHON = {
    "store/postgres/caller_transaction.py": "savepoints in callers' transactions",
    "store/postgres/database.py": "the table of migrations",
    "store/postgres/doctor.py": "checks of the server",
    "store/postgres/listener.py": "LISTEN, and the notification that proves it",
    "store/postgres/sequences.py": "the sequences of the schema",
    "store/postgres/shared_listener.py": "the same for many tenants",
    "store/postgres/shard.py": "the check of all tenants at once",
    "store/postgres/schema_copy.py": "whole schemas: created, renamed, copied, dropped",
    "store/sqlite/caller_transaction.py": "what a caller's connection has open",
    "store/sqlite/file_poll.py": "the check of a file from outside",
    "store/sqlite/file_copy.py": "whole files: their tables renamed and copied",
    "store/sqlite/engine.py": "transactions, savepoints and pragmas",
    "store/sqlite/database.py": "the version of the schema",
    "lab/simulation/handler_parts.py": "the own rows of simulated handlers",
    "cli/migrate.py": "begin and commit around each migration that is printed for a DBA",
}
#: Tables of the migrations that no test has to empty: parts of others, and settings of the server.
_PARTS = {"history_rest", "event_rest", "job_log_rest", "shared_lease_upper_bound"}
_SQL = re.compile(
    r"""\bselect\s+(\*|\w+\s*[(,]|.+\bfrom\b) | \binsert\s+into\s | \bdelete\s+from\s
    | \bupdate\s+\S+\s+set\s | \b(create|alter|drop|truncate)\s+(table|schema|index|function)\b
    | ^\s*(pragma|savepoint|listen|release\ savepoint|rollback\ to)\s
    | ^(begin(\ immediate)?|commit|rollback);?$""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
_VALUES = {"schema": "freehold", "schema_key": "1", "control": "freehold", **STAGE_SQL}


def _files(store: str) -> dict[str, Path]:
    return {path.stem: path for path in (PACKAGE / "store" / store / "sql").glob("*.sql")}


def _statements(store: str) -> set[str]:
    return {name for name in _files(store) if not name.startswith("_")}


def test_python_holds_no_sql_outside_its_homes() -> None:
    found = {
        module.path_in_package
        for module in modules()
        if any(_SQL.search(s) for s in strings(module.tree))
    }
    assert found == set(SQL_IN_PYTHON)


def test_both_stores_have_the_same_statements() -> None:
    assert _statements("postgres") == _statements("sqlite")


def test_both_stores_have_the_same_migrations() -> None:
    named = [
        [(version, name) for version, name, _ in load_migrations(f"freehold.store.{store}")]
        for store in STORES
    ]
    assert named[0] == named[1]
    versions = [version for version, _ in named[0]]
    assert versions == list(range(1, len(versions) + 1))


def test_the_tests_know_every_table() -> None:
    """A table that is not emptied between two tests carries one into the other."""
    texts = [sql for _, _, sql in load_migrations("freehold.store.postgres")]
    found = re.findall(r"^create table \{schema\}\.(\w+)", "\n".join(texts), re.MULTILINE)
    assert set(found) - _PARTS == set(TABLES)


def test_every_statement_that_a_verb_names_exists() -> None:
    assert set(_named()) <= _statements("postgres")


def test_every_statement_is_named_by_a_verb() -> None:
    """Also those that a verb picks from a list, such as the sources of a page."""
    texts = {
        text for module in modules() if _is_verbs(module.name) for text in strings(module.tree)
    }
    assert _statements("postgres") <= texts


def test_only_the_store_makes_statements() -> None:
    """Others carry groups of statements, or lose some of them: they make none."""
    builders = {"Statement", "StatementGroup", "read", "together", "write"}
    for module in modules():
        imported = {
            alias.name
            for node in ast.walk(module.tree)
            if isinstance(node, ast.ImportFrom) and node.module == "freehold.store.statements"
            for alias in node.names
        }
        made = builders & imported & set(_called(module.tree))
        assert not made or module.name.startswith("freehold.store."), module.path_in_package


@pytest.mark.parametrize("store", STORES)
def test_every_part_of_a_statement_is_used(store: str) -> None:
    texts = {name: path.read_text(encoding="utf-8") for name, path in _files(store).items()}
    for name in texts:
        if name.startswith("_"):
            used = any(f"{{{name[1:]}}}" in text for text in texts.values())
            assert used, f"{store}/sql/{name}.sql is used by no statement"


@pytest.mark.parametrize("store", STORES)
def test_every_statement_can_be_filled_in(store: str) -> None:
    filled = load_statements(f"freehold.store.{store}", _VALUES)
    assert set(filled) == _statements(store)
    assert not any("{" in text for text in filled.values())


#: The store whose sessions read a property.
_READ_BY = {
    Property.ADDS_ROWS: "postgres",
    Property.CAN_CONFLICT: "postgres",
    Property.TAKES_LONG: "postgres",
    Property.NOT_NOTIFIED: "sqlite",
    Property.FILLS_CANDIDATES: "sqlite",
}


@pytest.mark.parametrize("wanted", Property)
def test_a_property_is_declared_in_the_store_that_reads_it(wanted: Property) -> None:
    declaring = {store for store in STORES if statements_with(wanted, f"freehold.store.{store}")}
    assert declaring == {_READ_BY[wanted]}


def test_a_misspelt_property_of_a_statement_is_refused() -> None:
    text = "-- properties: can_conflict, adds_row\ninsert into fruit default values"
    with pytest.raises(ValueError, match="adds_row"):
        properties_of("enqueue", text)


def test_a_property_of_a_part_is_refused() -> None:
    """It would not be read: the statements that include the part are other files."""
    with pytest.raises(ValueError, match="_plain_job"):
        properties_of("_plain_job", "-- properties: adds_rows\nselect 1")


def test_a_statement_that_adds_rows_locks_no_row_of_others() -> None:
    texts = load_statements("freehold.store.postgres", _VALUES)
    for name in statements_with(Property.ADDS_ROWS, "freehold.store.postgres"):
        assert not re.search(r"\b(update|delete|lock|on conflict)\b", texts[name]), name


def test_the_simulation_knows_every_statement_that_claims_or_stores_new_jobs() -> None:
    """Otherwise it would check the jobs of a new or renamed one by other rules."""
    package = "freehold.store.postgres"
    new = statements_with(Property.ADDS_ROWS, package)
    assert new | statements_with(Property.CAN_CONFLICT, package) == ENQUEUES
    assert statements_with(Property.FILLS_CANDIDATES, "freehold.store.sqlite") == CLAIMS


def test_postgres_names_are_qualified() -> None:
    """No search path is relied on: behind a pooler a session has the settings of others."""
    schema = "\n".join(sql for _, _, sql in load_migrations("freehold.store.postgres"))
    tables = re.findall(r"create (?:unlogged )?(?:table|view) \{schema\}\.(\w+)", schema)
    assert {"job", "history", "job_log", "rate_usage", "last_notified"} <= set(tables)
    bare = re.compile(rf"\b(from|join|into|update)\s+({'|'.join(tables)})\b(?!\.)")
    for name, text in load_statements("freehold.store.postgres", _VALUES).items():
        assert not bare.search(text), f"{name}.sql names a table without its schema"


def _called(tree: ast.AST) -> Iterator[str]:
    """Names that are called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def _is_verbs(name: str) -> bool:
    return name.startswith("freehold.store.") and "." not in name.removeprefix(
        "freehold.store.verbs."
    ).removeprefix("freehold.store.")


def _named() -> Iterator[str]:
    for module in modules():
        if not _is_verbs(module.name):
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                first = node.args[0] if node.args else None
                is_builder = node.func.id in ("Statement", "read", "write")
                if is_builder and isinstance(first, ast.Constant):
                    yield str(first.value)
