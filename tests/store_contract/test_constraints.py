"""The table itself refuses invalid rows, from any writer."""

from __future__ import annotations

import psycopg
import pytest

from freehold.errors import StoreError
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.model.state import HOLDS_LANE, NEEDS_LANE, Stage
from freehold.store.statements import Conflict
from tests.stores import StoreUnderTest

REFUSAL = (psycopg.IntegrityError, StoreError, Conflict)


def refused(store: StoreUnderTest, constraint: str, statement: str) -> None:
    before = store.everything()
    with pytest.raises(REFUSAL, match=constraint):
        store.sql(statement)
    assert store.everything() == before


@pytest.mark.requirement("S0.19")
@pytest.mark.parametrize("column", ["lease_owner", "lease_token", "lease_expires_at", "leased_at"])
def test_a_leased_row_without_part_of_its_lease_cannot_be(
    store: StoreUnderTest, column: str
) -> None:
    store.add()
    store.claim_one()
    refused(store, "job_lease", f"update {{s}}job set {column} = null")


@pytest.mark.requirement("S0.19")
@pytest.mark.parametrize(
    "remnant",
    [
        "lease_owner = 'w1'",
        "lease_token = 1",
        "lease_expires_at = created_at",
        "leased_at = created_at",
        "heartbeat_at = created_at",
        "started_at = created_at",
    ],
)
@pytest.mark.parametrize("state", ["queued", "paused"])
def test_a_row_that_is_not_leased_cannot_keep_part_of_a_lease(
    store: StoreUnderTest, remnant: str, state: str
) -> None:
    job_id = store.add()
    if state == "paused":
        store.store.operate(OperatorVerb.PAUSE, [job_id], "ann", None)
    refused(store, "job_lease", f"update {{s}}job set {remnant}")


@pytest.mark.requirement("S0.19", "S0.7")
def test_a_lease_cannot_be_dropped_by_halves(store: StoreUnderTest) -> None:
    store.add()
    store.claim_one()
    refused(store, "job_lease", "update {s}job set stage = {ready}")


@pytest.mark.requirement("S0.19", "S0.2")
def test_a_row_cannot_become_leased_without_an_owner(store: StoreUnderTest) -> None:
    store.add()
    refused(store, "job_lease", "update {s}job set stage = {leased}")


@pytest.mark.requirement("S4.3")
@pytest.mark.parametrize("stage", sorted(HOLDS_LANE - {Stage.LEASED}))
def test_a_lane_cannot_have_two_holders(store: StoreUnderTest, stage: Stage) -> None:
    store.add(target="lane")
    second = store.add(target="lane")
    store.claim_one()
    refused(
        store, "job_lane_holder", f"update {{s}}job set stage = {{{stage}}} where id = {second}"
    )


@pytest.mark.requirement("S4.3", "S0.2")
def test_two_jobs_of_a_lane_cannot_both_be_leased(store: StoreUnderTest) -> None:
    store.add(target="lane")
    second = store.add(target="lane")
    store.claim_one()
    refused(
        store,
        "job_lane_holder",
        "update {s}job set stage = {leased}, lease_owner = 'w2', lease_token = 9, "
        f"leased_at = created_at, lease_expires_at = created_at where id = {second}",
    )


@pytest.mark.requirement("P9")
def test_two_live_jobs_cannot_have_one_unique_key(store: StoreUnderTest) -> None:
    store.add(unique_key="k")
    store.add(unique_key="other")
    refused(store, "job_unique", "update {s}job set unique_key = 'k'")


@pytest.mark.requirement("S4.4", "P2")
def test_a_stop_request_needs_an_owner(store: StoreUnderTest) -> None:
    store.add()
    refused(store, "job_stop_request", "update {s}job set stop_request = 'cancel'")


@pytest.mark.parametrize("stage", sorted(NEEDS_LANE))
def test_a_job_without_a_lane_cannot_stand_in_one(store: StoreUnderTest, stage: Stage) -> None:
    store.add()
    refused(store, "job_lane", f"update {{s}}job set stage = {{{stage}}}")


@pytest.mark.requirement("S0.1")
def test_there_is_no_stage_but_those_that_are_known(store: StoreUnderTest) -> None:
    store.add()
    refused(store, "job_stage", "update {s}job set stage = 'z'")


@pytest.mark.requirement("S0.1")
def test_the_history_has_final_states_only(store: StoreUnderTest) -> None:
    store.add()
    assert store.end(store.claim_one(), OutcomeKind.SUCCESS)
    refused(store, "state", "update {s}history set state = 'running'")


@pytest.mark.requirement("P7")
@pytest.mark.parametrize("wrong", ["attempt = -1", "max_attempts = 0", "lost_attempts = -1"])
def test_a_budget_cannot_be_negative(store: StoreUnderTest, wrong: str) -> None:
    store.add()
    refused(store, "job_attempts", f"update {{s}}job set {wrong}")
