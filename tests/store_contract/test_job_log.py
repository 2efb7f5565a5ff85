"""The job log: lines are stored once, in order, for as long as their job."""

from __future__ import annotations

from freehold.model.job import Attempt
from freehold.model.job_log import LogLine, Progress
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.store.types import LogChunk, NewLogLine
from tests.stores import StoreUnderTest, key_of


def _append(
    store: StoreUnderTest, attempt: Attempt, *lines: NewLogLine, progress: Progress | None = None
) -> None:
    assert store.store.append_log(attempt.owner, [LogChunk(key_of(attempt), progress, lines)]) == ()


def _lines(store: StoreUnderTest, job_id: int) -> list[tuple[int, str]]:
    return [(note.number, note.line) for note in store.store.read_log(job_id)]


def test_lines_are_read_in_the_order_of_their_numbers_with_their_time(
    store: StoreUnderTest,
) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    _append(store, attempt, NewLogLine(1, "first", 2.5), NewLogLine(2, "sécond\n", 0.0))
    store.advance(1.0)
    _append(store, attempt, NewLogLine(3, "third", 0.25))
    found = store.store.read_log(job_id)
    assert found == [
        LogLine(job_id, attempt.token, 1, found[0].at, "first"),
        LogLine(job_id, attempt.token, 2, found[1].at, "sécond\n"),
        LogLine(job_id, attempt.token, 3, found[2].at, "third"),
    ]
    assert [(store.now() - note.at).total_seconds() for note in found] == [3.5, 1.0, 0.25]


def test_the_newest_lines_are_read_oldest_first(store: StoreUnderTest) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    _append(store, attempt, *(NewLogLine(n, f"line {n}", 0.0) for n in (1, 2, 3)))
    every = store.store.read_log(job_id)
    assert [note.number for note in store.store.read_log(job_id, 2)] == [2, 3]
    assert store.store.read_log(job_id, newest=9) == every


def test_a_write_that_had_to_be_repeated_leaves_each_line_once(store: StoreUnderTest) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    for _ in range(2):
        _append(store, attempt, NewLogLine(1, "first", 0.0), NewLogLine(2, "second", 0.0))
    _append(store, attempt, NewLogLine(2, "second", 0.5), NewLogLine(3, "third", 0.0))
    assert _lines(store, job_id) == [(1, "first"), (2, "second"), (3, "third")]


def test_progress_without_lines_and_lines_without_progress(store: StoreUnderTest) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    assert store.job(job_id).progress is None
    _append(store, attempt, progress=Progress(1.0, 3.0))
    _append(store, attempt, NewLogLine(1, "line", 0.0))
    assert store.job(job_id).progress == Progress(1.0, 3.0)
    _append(store, attempt, progress=Progress(2.0, 3.0, "½", attempt=1))
    assert store.job(job_id).progress == Progress(2.0, 3.0, "½")
    assert _lines(store, job_id) == [(1, "line")]


def test_many_attempts_are_noted_at_once_and_the_lost_ones_are_named(
    store: StoreUnderTest,
) -> None:
    mine, theirs = store.add(), store.add()
    attempts = {store_attempt.job_id: store_attempt for store_attempt in store.claim()}
    assert store.end(attempts[theirs], OutcomeKind.SUCCESS)
    chunk = [
        LogChunk(key_of(attempts[job_id]), Progress(1.0), (NewLogLine(1, "here", 0.0),))
        for job_id in (theirs, mine)
    ]
    assert store.store.append_log("w1", chunk) == (theirs,)
    assert store.store.append_log("w1", []) == ()
    assert (_lines(store, mine), _lines(store, theirs)) == ([(1, "here")], [])
    assert store.job(mine).progress == Progress(1.0)
    assert store.job(theirs).progress is None


def test_progress_survives_a_retry_the_end_and_a_revival(store: StoreUnderTest) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    _append(store, attempt, NewLogLine(1, "once", 0.0), progress=Progress(1.0))
    for kind in (OutcomeKind.ERROR, OutcomeKind.FAIL):
        assert store.end(attempt, kind)
        assert store.job(job_id).progress == Progress(1.0)
        if kind is OutcomeKind.ERROR:
            store.advance(3600.0)
            store.store.make_ready(10)
            attempt = store.claim_one()
    store.store.operate(OperatorVerb.RETRY, [job_id], "ann", None)
    assert store.job(job_id).progress == Progress(1.0)
    assert store.end(store.claim_one(), OutcomeKind.SUCCESS)
    assert store.job(job_id).progress == Progress(1.0)
    assert _lines(store, job_id) == [(1, "once")]


def test_deleting_a_job_deletes_its_log(store: StoreUnderTest) -> None:
    job_id, other = store.add(), store.add()
    for attempt in store.claim():
        _append(store, attempt, NewLogLine(1, "here", 0.0))
        if attempt.job_id == job_id:
            assert store.end(attempt, OutcomeKind.SUCCESS)
    assert store.store.delete([job_id, other]) == [job_id]
    assert (_lines(store, job_id), _lines(store, other)) == ([], [(1, "here")])


def test_old_log_lines_expire_with_their_day(store: StoreUnderTest) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    _append(store, attempt, NewLogLine(1, "long ago", 0.0))
    assert store.end(attempt, OutcomeKind.SUCCESS)
    store.advance(20 * 86400.0)
    while store.store.apply_retention(30.0, 100):
        pass
    assert _lines(store, job_id) == [(1, "long ago")]
    store.advance(20 * 86400.0)
    while store.store.apply_retention(30.0, 100):
        pass
    assert _lines(store, job_id) == []
