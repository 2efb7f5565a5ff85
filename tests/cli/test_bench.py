"""`freehold bench`: figures of the user's own store, which it leaves as it was."""

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


def test_the_table_says_what_was_measured(sqlite_shell: Shell) -> None:
    said = sqlite_shell("bench", "--jobs", "100", "--seconds", "0.1")
    assert (said.code, said.err) == (0, "")
    for word in ("one by one", "in bulk", "drain", "p50", "p99", "all of them ended"):
        assert word in said.out


def test_a_store_that_is_not_there_is_told_without_its_password() -> None:
    said = run("bench", "--url", "postgresql://u:secret@127.0.0.1:1/x")
    assert said.code != 0
    assert "cannot connect" in said.err
    assert "secret" not in said.err + said.out
