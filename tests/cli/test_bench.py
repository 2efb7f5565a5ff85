"""`freehold bench`: measurements on the user's own store, which it does not change."""

from __future__ import annotations

from pathlib import Path

from tests.cli.shell import Shell, run

_FIGURES = (
    "enqueue_per_second",
    "bulk_enqueue_per_second",
    "drain_per_second",
    "start_p50_ms",
    "start_p99_ms",
)


def _schemas(shell: Shell) -> list[tuple[object, ...]]:
    if shell.store.kind == "sqlite":
        return []
    return shell.store.sql("select nspname from pg_namespace order by 1")


def test_it_measures_and_leaves_nothing_behind(shell: Shell, tmp_path: Path) -> None:
    mine = shell.store.add(task="mine")
    before = shell.store.everything(), _schemas(shell), sorted(tmp_path.iterdir())
    found = shell("bench", "--jobs", "200", "--seconds", "0.1", "--json").json
    assert (shell.store.everything(), _schemas(shell), sorted(tmp_path.iterdir())) == before
    assert shell.store.state(mine) == "queued"
    assert all(found[name] > 0 for name in _FIGURES)
    assert found["start_p50_ms"] <= found["start_p99_ms"]
    assert found["jobs"] > 200


def test_the_table_names_what_was_measured(sqlite_shell: Shell) -> None:
    result = sqlite_shell("bench", "--jobs", "100", "--seconds", "0.1")
    assert (result.code, result.err) == (0, "")
    for text in ("one by one", "in bulk", "drain", "p50", "p99", "all ended"):
        assert text in result.out


def test_the_error_for_an_unavailable_store_has_no_password() -> None:
    result = run("bench", "--url", "postgresql://u:secret@127.0.0.1:1/x")
    assert result.code != 0
    assert "cannot connect" in result.err
    assert "secret" not in result.err + result.out
