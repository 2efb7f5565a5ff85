"""Members of flows as single jobs: why they wait, and copies of them."""

from __future__ import annotations

import pytest

from freehold.model.outcome import OutcomeKind
from freehold.operations.edits import CloneChanges
from freehold.operator import Operator
from tests.flow_examples import import_flow
from tests.store_contract.flows import batch_of, counts_of, members, settle
from tests.stores import StoreUnderTest, key_of

DAY = 86400.0


def explained(store: StoreUnderTest, job_id: int | None) -> tuple[str, str, str | None]:
    assert job_id is not None
    (cause,) = Operator(store.store).explain(job_id)
    return cause.code, cause.text, cause.remedy


@pytest.mark.requirement("N12", "S4.3")
def test_a_node_that_waits_names_its_sources(store: StoreUnderTest) -> None:
    flow = import_flow(store)
    extract, clean, load, report = store.store.flow_nodes(flow)
    waits = f"it waits for its sources in flow {flow}"
    running = f"job {extract.job_id} (extract), assigned"
    attempt = store.claim_one()
    assert explained(store, clean.job_id) == ("sources", f"{waits}: {running}", None)
    waiting = f"job {clean.job_id} (clean), pending; 'load', open"
    assert explained(store, report.job_id) == ("sources", f"{waits}: {waiting}", None)
    assert load.part is not None
    (member, _) = store.store.flow_members(load.part).jobs
    part = f"it waits for its sources in flow {load.part}: {running}"
    assert explained(store, member.id) == ("sources", part, None)
    store.end(attempt, OutcomeKind.SUCCESS)
    settle(store)
    for each in store.claim():
        kind = OutcomeKind.FAIL if each.job_id == clean.job_id else OutcomeKind.SUCCESS
        store.end(each, kind, reason="no rows")
    settle(store)
    # It holds for the failed source; the group has succeeded, and is named no more.
    failed = f"{waits}: job {clean.job_id} (clean), failed: no rows"
    remedy = "retry the workflow, or cancel this job"
    assert explained(store, report.job_id) == ("sources", failed, remedy)


@pytest.mark.requirement("N9", "S4.3")
def test_a_job_that_gathers_names_what_it_waits_for(store: StoreUnderTest) -> None:
    store.add()
    parent = store.claim_one()
    found = store.store.gather(parent.owner, key_of(parent), "pages", 1, members(7))
    assert found is not None
    waits_for = f"gather/{found.flow}"
    assert store.end(parent, OutcomeKind.SUSPEND, delay_seconds=DAY, waits_for=waits_for)
    first = store.claim_one()
    assert first.job_id == found.jobs[0]
    named = "; ".join(f"job {job_id} (t), queued" for job_id in found.jobs[1:5])
    text = (
        f"it waits for the jobs of gather {found.flow}: job {first.job_id} (t), assigned; {named}"
    )
    causes = {cause.code: cause for cause in Operator(store.store).explain(parent.job_id)}
    assert (causes["sources"].text, causes["sources"].remedy) == (text, None)
    store.end(first, OutcomeKind.SUCCESS)
    settle(store)
    texts = [cause.text for cause in Operator(store.store).explain(parent.job_id)]
    assert not any(f"job {first.job_id} " in text for text in texts)


@pytest.mark.requirement("N11")
def test_a_clone_of_a_member_leaves_its_batch(store: StoreUnderTest) -> None:
    batch = batch_of(store, *members(2))
    for attempt in store.claim():
        store.end(attempt, OutcomeKind.FAIL)
    assert counts_of(store, batch) == (2, 0, 2, 0)
    made = Operator(store.store).clone(attempt.job_id, CloneChanges(), by="ann")
    store.end(store.claim_one(), OutcomeKind.SUCCESS)
    assert store.job(made.id).policy.flow is None
    assert counts_of(store, batch) == (2, 0, 2, 0)


@pytest.mark.requirement("N12")
def test_a_clone_of_a_node_waits_for_nothing(store: StoreUnderTest) -> None:
    """It is no node, so it runs now, and nothing follows its end."""
    flow = import_flow(store)
    extract, clean, *_ = store.store.flow_nodes(flow)
    assert clean.job_id is not None
    made = Operator(store.store).clone(clean.job_id, CloneChanges(), by="ann")
    attempts = {each.job_id: each for each in store.claim()}
    assert sorted(attempts) == [extract.job_id, made.id]
    before = store.store.flow_nodes(flow)
    store.end(attempts[made.id], OutcomeKind.FAIL)
    settle(store)
    assert store.store.flow_nodes(flow) == before
