"""Metadata stays with its job: through claims, retries, history and back."""

from __future__ import annotations

import pytest

from freehold.model.job import NewJob
from freehold.model.meta import encode_meta
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from tests.store_contract.test_read import page_ids
from tests.stores import StoreUnderTest

META = {"order": 7, "é": "ü", "rate": 0.5, "urgent": True, "parent": None}


@pytest.mark.requirement("N6")
@pytest.mark.parametrize("key", [None, "k"], ids=["plain", "unique key"])
def test_metadata_is_lost_by_no_way_of_enqueueing(store: StoreUnderTest, key: str | None) -> None:
    one = NewJob(task="t", meta_json=encode_meta(META), unique_key=key)
    other = NewJob(task="t", meta_json=encode_meta({"order": 8}))
    ids = [store.add(meta_json=encode_meta(META))]
    ids += [each.id for each in store.store.enqueue([one, NewJob(task="t"), other])]
    jobs = store.store.read(ids)
    assert [jobs[id_].meta for id_ in ids] == [META, META, {}, {"order": 8}]
    attempts = {attempt.job_id: attempt for attempt in store.claim()}
    assert [attempts[id_].meta for id_ in ids] == [META, META, {}, {"order": 8}]


@pytest.mark.requirement("N6")
@pytest.mark.parametrize("target", [None, "lane"])
@pytest.mark.parametrize("kind", [OutcomeKind.SUCCESS, OutcomeKind.FAIL, OutcomeKind.CANCEL])
def test_history_keeps_metadata_and_a_retry_brings_it_back(
    store: StoreUnderTest, kind: OutcomeKind, target: str | None
) -> None:
    job_id = store.add(meta_json=encode_meta(META), target=target)
    assert store.end(store.claim_one(), kind)
    assert store.job(job_id).meta == META
    store.store.operate(OperatorVerb.RETRY, [job_id], "ann", None)
    assert store.job(job_id).meta == META
    assert store.claim_one().meta == META


@pytest.mark.requirement("N6")
def test_a_lost_worker_loses_no_metadata(store: StoreUnderTest) -> None:
    job_id = store.add(meta_json=encode_meta(META))
    store.claim_one()
    store.advance(31)
    (recovered,) = store.store.recover(10, 0.5)
    assert recovered.attempt.meta == META
    assert store.job(job_id).meta == META


@pytest.mark.requirement("N6")
def test_metadata_that_another_program_wrote_hides_no_job(store: StoreUnderTest) -> None:
    job_id = store.add()
    store.sql("update {s}job set meta = '[1, 2]'")
    assert store.job(job_id).meta == {}
    assert store.claim_one().meta == {}


VALUES = [1, True, "1", "true", None, 0, False, "", 1.5, 2**53, 2**53 + 1, -(2**63), "é", 1e300]


@pytest.mark.requirement("N6", "N16")
@pytest.mark.parametrize("ended", [False, True], ids=["live", "finished"])
def test_a_filter_finds_equal_metadata_and_no_other(store: StoreUnderTest, ended: bool) -> None:
    ids = [store.add(meta_json=encode_meta({"v": value, "n": 1})) for value in VALUES]
    store.add(meta_json=encode_meta({"n": 1}))
    store.add()
    if ended:
        for attempt in store.claim():
            store.end(attempt, OutcomeKind.SUCCESS)
    for value, job_id in zip(VALUES, ids, strict=True):
        assert page_ids(store, meta={"v": value}) == [job_id], value
        assert page_ids(store, meta={"v": value, "n": 1.0}) == [job_id], "1.0 is 1"
        assert page_ids(store, meta={"v": value, "n": 2}) == []
    assert page_ids(store, meta={"v": 1.0}) == [ids[0]]
    assert page_ids(store, meta={"v": float(2**53)}) == [ids[9]]
    assert page_ids(store, meta={"other": None}) == [], "a missing key is not null"
    assert len(page_ids(store, meta={})) == len(VALUES) + 2


@pytest.mark.requirement("N6", "N16")
def test_a_filter_passes_over_metadata_of_other_programs(store: StoreUnderTest) -> None:
    for meta in ('[{"v": 1}]', '{"v": [1]}', "7", '"v"', '{"w": {"v": 1}}'):
        job_id = store.add()
        store.sql(f"update {{s}}job set meta = '{meta}' where id = {job_id}")
    assert page_ids(store, meta={"v": 1}) == []
