"""Keys: a job that is enqueued twice with one key exists once."""

from __future__ import annotations

import pytest

from freehold import Freehold
from tests.client.helpers import claimed, greet, jobs_of

pytestmark = pytest.mark.requirement("P9", "S0.18")


def test_a_unique_key_has_one_live_job(app: Freehold) -> None:
    task = app.task(greet).using(unique_key="daily")
    first, second = task.enqueue("Ann"), task.enqueue("Bob")
    assert (first.created, second.created) == (True, False)
    assert second.id == first.id
    assert "existed already" in repr(second)
    assert len(jobs_of(app)) == 1


def test_a_unique_key_is_free_again_after_the_end(app: Freehold) -> None:
    task = app.task(greet).using(unique_key="daily")
    first = task.enqueue("Ann")
    first.cancel()
    second = task.enqueue("Ann")
    assert second.created
    assert second.id != first.id


def test_an_idempotency_key_is_remembered_beyond_the_end(app: Freehold) -> None:
    task = app.task(greet).using(idempotency_key="request-1")
    first = task.enqueue("Ann")
    first.cancel()
    again = task.enqueue("Ann")
    assert (again.created, again.id) == (False, first.id)


def test_keys_hold_within_one_call_too(app: Freehold) -> None:
    task = app.task(greet)
    keyed = [
        task.using(unique_key="u").prepare("a"),
        task.using(idempotency_key="i").prepare("b"),
        task.prepare("c"),
        task.using(unique_key="u").prepare("d"),
        task.using(idempotency_key="i").prepare("e"),
    ]
    handles = app.enqueue_many(keyed)
    assert [handle.created for handle in handles] == [True, True, True, False, False]
    assert (handles[3].id, handles[4].id) == (handles[0].id, handles[1].id)
    assert len(claimed(app)) == 3


def test_keys_may_contain_any_printable_text(app: Freehold) -> None:
    task = app.task(greet)
    for key in ("'; drop table job; --", "schlüssel ✓", "{s}:x", '"', "\\", "%s $1 ?"):
        handle = task.using(unique_key=key, target=key, idempotency_key=key).enqueue("Ann")
        job = handle.read()
        assert (job.unique_key, job.target) == (key, key)
        assert not task.using(unique_key=key).enqueue("Ann").created
