"""A call of several transactions fails between two of them: its caller gets the right error."""

from __future__ import annotations

import pytest

from freehold.errors import OutcomeUnknown, StoreUnavailable
from freehold.model.job import NewJob
from freehold.model.waiting import Unique, waiting_of
from freehold.store.verbs.enqueue import enqueue

_KEYED = NewJob(task="t", unique_key="taken")
_PLAIN = NewJob(task="t")


@pytest.mark.requirement("P9")
def test_some_jobs_were_stored_before_the_store_failed() -> None:
    """Found by the simulation: the error claimed that calling again is safe."""
    steps = enqueue([_PLAIN, _KEYED])
    assert [each.name for each in next(steps).statements] == ["enqueue_keyed"]
    born = [(0, 17, 0)]  # the plain one; the key of the other is taken
    assert [each.name for each in steps.send([born]).statements] == ["find_holders"]
    with pytest.raises(OutcomeUnknown, match="some of these jobs were stored"):
        steps.throw(StoreUnavailable("the connection broke"))


def test_a_waiting_job_was_replaced_before_the_store_failed() -> None:
    option = Unique("k", until="start", replace=("args",))
    kept = Unique("other", until="start")
    steps = enqueue([NewJob(task="t", waiting=waiting_of("t", each)) for each in (option, kept)])
    assert [each.name for each in next(steps).statements] == ["enqueue_replacing"]
    replaced = [(0, 17, False, 0)]
    assert [each.name for each in steps.send([replaced]).statements] == ["enqueue_waiting"]
    with pytest.raises(OutcomeUnknown, match="stored or replaced") as caught:
        steps.throw(StoreUnavailable("the connection broke"))
    assert "idempotency" not in str(caught.value)


def test_nothing_was_stored_before_the_store_failed() -> None:
    steps = enqueue([_KEYED])
    next(steps)
    steps.send([[]])
    with pytest.raises(StoreUnavailable):
        steps.throw(StoreUnavailable("the connection broke"))
