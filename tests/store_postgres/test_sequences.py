"""Sequences that a restore left behind: noticed, explained, and advanced beyond the rows."""

from __future__ import annotations

import psycopg
import pytest

from freehold.errors import SequenceBehind
from freehold.model.job import NewJob
from freehold.model.outcome import OutcomeKind
from freehold.store.postgres.sequences import GAP
from freehold.store.store import Store
from tests.stores import PostgresUnderTest

SEQUENCES = ("job_id", "lease_token", "event_id")


@pytest.fixture
def restored(postgres_under_test: PostgresUnderTest) -> PostgresUnderTest:
    """Three jobs: finished, leased and ready. Their sequences begin anew."""
    store = postgres_under_test
    store.reset()
    for _ in range(3):
        store.add()
    assert store.end(store.claim_one(), OutcomeKind.FAIL)
    store.claim_one()
    for name in SEQUENCES:
        store.sql(f"select setval('{{s}}{name}', 1, false)")
    return store


def sequences_line(store: PostgresUnderTest) -> tuple[bool, str]:
    [line] = [each for each in store.database.diagnose() if each.name == "sequences"]
    return line.good, line.detail


@pytest.mark.requirement("P9")
def test_enqueueing_with_sequences_left_behind_writes_nothing_and_explains(
    restored: PostgresUnderTest,
) -> None:
    restored.sql("select setval('{s}job_id', 2, false)")  # the next id belongs to the leased job
    before = restored.everything()
    with pytest.raises(SequenceBehind, match="freehold migrate"):
        restored.add()
    with pytest.raises(SequenceBehind):
        restored.store.enqueue([NewJob(task="t")] * 2)
    assert restored.everything() == before


def test_a_callers_transaction_gets_the_same_error(
    restored: PostgresUnderTest,
) -> None:
    restored.sql("select setval('{s}job_id', 2, false)")
    with (
        psycopg.connect(restored.url) as connection,
        pytest.raises(SequenceBehind, match="freehold migrate"),
    ):
        Store(restored.database.caller_session(connection)).enqueue([NewJob(task="t")])


@pytest.mark.parametrize("key", ["", ", unique_key => 'k'", ", idempotency_key => 'k'"])
def test_the_function_enqueue_names_the_sequence_and_not_a_key(
    restored: PostgresUnderTest, key: str
) -> None:
    restored.sql("select setval('{s}job_id', 2, false)")
    before = restored.everything()
    with (
        psycopg.connect(restored.url) as connection,
        pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="freehold migrate"),
    ):
        connection.execute(f"select freehold.enqueue('t'{key})".encode())
    assert restored.everything() == before
    assert restored.sql("select last_value from {s}job_id") == [(2,)]  # no further id was drawn


def test_doctor_names_the_sequences_and_migrate_advances_them(restored: PostgresUnderTest) -> None:
    largest = restored.sql("select max(lease_token) from {s}job")[0][0]
    good, detail = sequences_line(restored)
    assert not good
    assert detail.startswith(
        "job_id, event_id, lease_token behind the stored rows: run freehold mig"
    )
    restored.database.migrate()
    assert sequences_line(restored) == (True, "ahead of all stored rows")
    job_id = restored.add()
    tokens = [attempt.token for attempt in restored.claim("w2")]
    assert job_id > 3 + GAP
    assert min(tokens) > largest + GAP


def test_migrate_leaves_sound_sequences_alone(postgres_under_test: PostgresUnderTest) -> None:
    store = postgres_under_test
    store.reset()
    first = store.add()
    store.database.migrate()
    assert store.add() == first + 1


def test_tokens_of_old_history_count_too(restored: PostgresUnderTest) -> None:
    """The largest token need not be that of a recent row."""
    restored.sql("update {s}history set token = 5000000")
    restored.database.migrate()
    assert restored.claim_one("w2").token > 5_000_000
