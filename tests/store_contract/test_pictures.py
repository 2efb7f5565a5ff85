"""The attempts of a time, and the jobs around one in its lane."""

from __future__ import annotations

from datetime import timedelta

import pytest

from freehold.errors import BadInput
from freehold.model.outcome import OutcomeKind
from freehold.operator import Operator
from freehold.store.verbs import queries
from tests.stores import LEASE_SECONDS, StoreUnderTest


def test_every_attempt_of_a_time_is_a_span(store: StoreUnderTest) -> None:
    old = store.add()
    store.end(store.claim_one("old"), OutcomeKind.SUCCESS)
    store.advance(3600.0)
    since = store.now() - timedelta(minutes=5)
    done, retried, running = (store.add(task=task) for task in ("a", "b", "c"))
    first, second, third = store.claim("w1")
    store.advance(2.0)
    store.end(first, OutcomeKind.SUCCESS)
    store.end(second, OutcomeKind.ERROR)
    found = Operator(store.store).attempts(since)
    spans = {each.job_id: each for each in found.spans}
    assert old not in spans
    assert (found.complete, found.looked_until) == (True, None)
    shown = {job_id: (each.outcome, each.task, each.token) for job_id, each in spans.items()}
    assert shown == {
        done: ("succeeded", "a", first.token),
        retried: ("retried", None, second.token),
        running: ("running", "c", third.token),
    }
    assert {each.worker for each in found.spans} == {"w1"}
    ends = {job_id: each.ended_at for job_id, each in spans.items()}
    assert ends == {done: store.now(), retried: store.now(), running: None}


def test_a_job_that_failed_has_one_span_for_each_attempt(store: StoreUnderTest) -> None:
    job_id, since = store.add(max_attempts=2), store.now()
    store.claim("lost")
    store.advance(LEASE_SECONDS)
    store.store.recover(10, 0.5)
    store.advance(3600.0)
    store.store.make_ready(10)
    store.end(store.claim_one("w2"), OutcomeKind.ERROR)
    found = Operator(store.store).attempts(since)
    assert [(each.job_id, each.worker, each.number) for each in found.spans] == [
        (job_id, "w2", 2),
        (job_id, "lost", 1),
    ]
    assert [each.outcome for each in found.spans] == ["failed", "lease_lost"]


def test_a_picture_with_more_than_its_limit_is_not_complete(
    store: StoreUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        store.add()
        store.end(store.claim_one(), OutcomeKind.SUCCESS)
    operator, since = Operator(store.store), store.now() - timedelta(hours=1)
    found = operator.attempts(since, limit=3)
    assert (len(found.spans), found.complete) == (3, False)
    monkeypatch.setattr(queries, "_SPANS_WINDOW", 2)
    windowed = operator.attempts(since)
    assert (len(windowed.spans), windowed.looked_until) == (2, store.now())
    with pytest.raises(BadInput, match="give a time before"):
        operator.attempts(store.now() + timedelta(seconds=1))


def test_the_jobs_around_one_in_its_lane(store: StoreUnderTest) -> None:
    ids = [store.add(target="lane") for _ in range(8)]
    store.add(target="other")
    store.claim(count=1)
    operator = Operator(store.store)

    def around(job_id: int | None, limit: int) -> list[int]:
        return [job.id for job in operator.lane_jobs("lane", job_id, limit)]

    assert around(ids[5], 2) == [ids[0], ids[3], ids[4], ids[5], ids[6]]
    assert around(None, 3) == [ids[0], ids[1], ids[2], ids[3]]
    assert operator.lane_jobs("none") == []
