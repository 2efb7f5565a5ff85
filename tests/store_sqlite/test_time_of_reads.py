"""The instant of a read is not before what it reads: no stored time lies in its future."""

from __future__ import annotations

from pathlib import Path

from freehold.store.sqlite.database import SqliteDatabase
from freehold.store.store import Store
from tests.store_contract.test_workers import word


def test_a_heartbeat_beside_the_read_of_the_workers_does_not_hide_its_worker(
    tmp_path: Path,
) -> None:
    """A heartbeat from the future is left out, as one from before the clock was set back."""
    path, micros = tmp_path / "store.db", 1_000_000_000
    writer = SqliteDatabase(path, lambda: micros)
    Store(writer.session()).heartbeat(word("w1"), 30.0)

    def clock() -> int:
        """Another process commits a heartbeat as soon as the reader knows the time."""
        nonlocal micros
        now, micros = micros, micros + 1
        Store(writer.session()).heartbeat(word("w1"), 30.0)
        return now

    reader = SqliteDatabase(path, clock)
    assert [each.owner for each in Store(reader.session()).workers()] == ["w1"]
    reader.close()
    writer.close()
