"""A row that no claim or sweep can write costs itself, and not its queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest

from freehold.errors import RowRefused
from freehold.json_views import job_document
from freehold.model.history import EventKind
from freehold.model.job import Attempt
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.state import Stage, State
from freehold.store.stage_sql import stage_byte
from freehold.store.types import AttemptEnd, JobFilter
from freehold.tasks import Registry
from freehold.telemetry import Telemetry
from freehold.worker.claimer import Claimer, ServedQueues
from freehold.worker.config import WorkerSettings
from freehold.worker.slots import Slots
from freehold.worker.sweeper import Sweeper
from freehold.worker.wakeups import Wakeups
from tests.broken_rows import FORBIDDEN, LOST_TOO_OFTEN, OUT_OF_RANGE, poison
from tests.stores import LEASE_SECONDS, PostgresUnderTest, StoreUnderTest

MEGABYTE = "(select string_agg(md5(i::text), '') from generate_series(1, 32768) i)"
LARGE_TASK = {"postgres": f"task = {MEGABYTE}"}


#: Against the constraints of both stores, also where only the stage is written.
HALF_LEASED = {"postgres": "lease_owner = 'x'", "sqlite": "lease_owner = 'x'"}


def state_in_row(store: StoreUnderTest, job_id: int) -> str:
    """Read without its arguments, which may be what is wrong with it."""
    return str(store.sql(f"select state from {{s}}jobs where id = {job_id}")[0][0])


def events(store: StoreUnderTest, job_id: int) -> list[EventKind]:
    return [event.kind for event in store.store.events(job_id)]


@pytest.mark.requirement("S3.3", "P7")
def test_a_job_that_cannot_be_claimed_is_paused_and_the_queue_goes_on(
    store: StoreUnderTest,
) -> None:
    jobs = [store.add() for _ in range(9)]
    poison(store, jobs[4], OUT_OF_RANGE)
    with pytest.raises(RowRefused):
        store.claim()
    aside = store.store.set_aside_ready("default")
    assert [each.job_id for each in aside] == [jobs[4]]
    assert state_in_row(store, jobs[4]) == State.PAUSED
    assert events(store, jobs[4]) == [EventKind.PAUSED]
    assert store.sql(f"select reason from {{s}}job where id = {jobs[4]}") == [(aside[0].reason,)]
    assert [each.job_id for each in store.claim()] == jobs[:4] + jobs[5:]


@pytest.mark.requirement("S3.3", "P7")
def test_looking_for_a_broken_row_changes_no_other(store: StoreUnderTest) -> None:
    for target in (None, "lane", "lane", None):
        store.add(target=target, limit_key="k")
    store.add(delay_seconds=1.0)
    store.claim_one("w1")
    store.claim_one("w2")
    store.advance(LEASE_SECONDS)
    store.claim_one("w3")
    before = store.everything()
    assert store.store.set_aside_ready("default") == []
    assert store.store.set_aside_swept() == []
    assert store.everything() == before


@pytest.mark.requirement("S3.3", "P7")
def test_an_expired_lease_that_cannot_be_recovered_is_paused_and_the_others_come_back(
    store: StoreUnderTest,
) -> None:
    jobs = [store.add() for _ in range(5)]
    attempts = store.claim()
    store.advance(LEASE_SECONDS)
    poison(store, jobs[2], LOST_TOO_OFTEN)
    with pytest.raises(RowRefused):
        store.store.recover(100, 0.5)
    assert [each.job_id for each in store.store.set_aside_swept()] == [jobs[2]]
    recovered = store.store.recover(100, 0.5)
    assert [each.attempt.job_id for each in recovered] == jobs[:2] + jobs[3:]
    assert state_in_row(store, jobs[2]) == State.PAUSED
    assert not any(store.end(attempt, OutcomeKind.SUCCESS) for attempt in attempts)


@pytest.fixture
def newer(store: StoreUnderTest) -> Iterator[StoreUnderTest]:
    """Its schema has an index that this version does not know: one waiting job for each task."""
    leased = stage_byte(Stage.LEASED)
    store.sql(f"create unique index newer on {{s}}job (task) where stage <> {leased!r}")
    yield store
    store.sql("drop index {s}newer")


@pytest.mark.requirement("N23")
def test_a_unique_index_of_a_newer_schema_costs_its_row_and_no_worker(
    newer: StoreUnderTest,
) -> None:
    """The finisher, the claimer and the sweeper survive no other errors than those of the store."""
    first = newer.add()
    attempt = newer.claim_one()
    other, second = newer.add(task="other"), newer.add()
    with pytest.raises(RowRefused, match="another row has its value"):
        newer.end(attempt, OutcomeKind.ERROR)
    newer.advance(LEASE_SECONDS)
    with pytest.raises(RowRefused):
        newer.store.recover(100, 0.5)
    assert [each.job_id for each in newer.store.set_aside_swept()] == [first]
    job = newer.job(first)
    assert (job.state, events(newer, first)) == (State.FAILED, [EventKind.FAILED])
    assert [each.job_id for each in newer.claim()] == [other, second]


@pytest.mark.requirement("N23")
def test_a_claim_that_such_an_index_refuses_is_an_error(store: StoreUnderTest) -> None:
    """Not a queue that seems to be empty."""
    leased = stage_byte(Stage.LEASED)
    store.sql(f"create unique index newer on {{s}}job (task) where stage = {leased!r}")
    try:
        first, second = store.add(), store.add()
        with pytest.raises(RowRefused, match="another row has its value"):
            store.claim()
        assert store.claim_one().job_id == first
        assert [each.job_id for each in store.store.set_aside_ready("default")] == [second]
    finally:
        store.sql("drop index {s}newer")


@pytest.mark.requirement("S0.7")
def test_a_live_lease_is_never_set_aside(store: StoreUnderTest) -> None:
    job_id = store.add()
    attempt = store.claim_one()
    poison(store, job_id, LOST_TOO_OFTEN)
    assert store.store.set_aside_swept() == []
    assert store.end(attempt, OutcomeKind.SUCCESS)


@pytest.mark.requirement("P7")
def test_a_broken_head_of_a_lane_holds_its_lane_until_a_person_decides(
    store: StoreUnderTest,
) -> None:
    broken, behind = store.add(target="lane"), store.add(target="lane")
    other = store.add()
    poison(store, broken, OUT_OF_RANGE)
    with pytest.raises(RowRefused):
        store.claim()
    assert [each.job_id for each in store.store.set_aside_ready("default")] == [broken]
    assert [each.job_id for each in store.claim()] == [other]
    assert store.store.lanes("", 10)[0].head == broken
    store.sql(f"update {{s}}job set attempt = 0, args = '{{}}' where id = {broken}")
    store.store.operate(OperatorVerb.CANCEL, [broken], "ann", None)
    assert [each.job_id for each in store.claim()] == [behind]


@pytest.mark.requirement("S3.3", "P7")
def test_a_job_that_no_constraint_would_allow_to_be_paused_fails(store: StoreUnderTest) -> None:
    forbidden, good = store.add(), store.add()
    poison(store, forbidden, FORBIDDEN)
    with pytest.raises(RowRefused):
        store.claim()
    assert [each.job_id for each in store.store.set_aside_ready("default")] == [forbidden]
    job = store.job(forbidden)
    assert (job.state, events(store, forbidden)) == (State.FAILED, [EventKind.FAILED])
    assert [each.job_id for each in store.claim()] == [good]


@pytest.fixture
def postgres_store(postgres_under_test: PostgresUnderTest) -> StoreUnderTest:
    postgres_under_test.reset()
    return postgres_under_test


@pytest.mark.requirement("S3.3", "P7")
@pytest.mark.parametrize("how", ["priority = -32768", "attempt = 32767", f"target = {MEGABYTE}"])
def test_a_due_job_that_cannot_become_ready_is_paused_and_sweeps_go_on(
    postgres_store: StoreUnderTest, how: str
) -> None:
    store = postgres_store
    store.add(queue="other")
    store.claim(queue="other")
    broken, due = store.add(delay_seconds=1.0), store.add(delay_seconds=1.0)
    store.advance(LEASE_SECONDS)
    poison(store, broken, {"postgres": how})
    telemetry = Telemetry()
    assert asyncio.run(sweep_and_claim(store, telemetry)) == [due]
    assert telemetry.total("set_aside") == 1
    assert store.sql("select count(*) from {s}job where stage = {leased}") == [(1,)]


class ClaimOnce:
    """In the place of an executor."""

    is_idle = False

    def __init__(self, now: Callable[[], float]) -> None:
        self.slots = Slots(5, now)
        self.claimed: list[int] = []
        self.claimer: Claimer | None = None

    def room(self) -> int:
        return self.slots.room()

    def hold(self, attempts: list[Attempt], _valid_until: float, _limited: object) -> None:
        self.claimed.extend(each.job_id for each in attempts)
        assert self.claimer is not None
        self.claimer.stop()


async def sweep_and_claim(store: StoreUnderTest, telemetry: Telemetry) -> list[int]:
    """Once each, as a worker does."""
    settings, wakeups = WorkerSettings(lease_timeout_seconds=LEASE_SECONDS), Wakeups()
    now = asyncio.get_running_loop().time
    jobs = ClaimOnce(now)
    sweeper = Sweeper(store.awaited, telemetry, settings, Registry(), jobs, wakeups, lambda: 0.5)
    queues = ServedQueues(store.awaited, ("default",), now)
    jobs.claimer = claimer = Claimer(
        store.awaited, "w1", telemetry, settings, None, {}, queues, jobs, wakeups
    )
    try:
        await sweeper.run_once()
        await claimer.run()
    finally:
        await store.database.aclose()
    return jobs.claimed


@pytest.mark.requirement("S3.3", "P7")
def test_a_job_that_cannot_be_parked_is_paused(postgres_store: StoreUnderTest) -> None:
    store = postgres_store
    broken, good = store.add(), store.add()
    poison(store, broken, LARGE_TASK)
    with pytest.raises(RowRefused, match="index row"):
        store.claim(tasks=frozenset({"t"}))
    assert [each.job_id for each in store.store.set_aside_ready("default")] == [broken]
    assert [each.job_id for each in store.claim(tasks=frozenset({"t"}))] == [good]


@pytest.mark.parametrize("column", ["progress", "policy", "tags"])
@pytest.mark.parametrize("value", ["7", "[1]", '{"done": "x"}', "null"])
def test_a_value_that_cannot_be_decoded_leaves_its_page_readable(
    store: StoreUnderTest, column: str, value: str
) -> None:
    jobs = [store.add(), store.add()]
    store.sql(f"update {{s}}job set {column} = '{value}' where id = {jobs[0]}")
    page = store.store.page(JobFilter()).jobs
    assert [job.id for job in page] == jobs[::-1]
    assert (page[1].progress, page[1].tags) == (None, ())
    assert job_document(page[1], show_args=True).id == jobs[0]
    store.claim()
    store.advance(LEASE_SECONDS)
    assert len(store.store.recover(10, 0.5)) == 2


@pytest.mark.requirement("S3.3", "S4.3", "P7")
def test_a_broken_follower_does_not_fail_the_end_of_its_lanes_holder(store: StoreUnderTest) -> None:
    holder, broken, behind = (store.add(target="lane") for _ in range(3))
    other_holder, other_behind = (store.add(target="other") for _ in range(2))
    attempts = {each.job_id: each for each in store.claim()}
    assert sorted(attempts) == [holder, other_holder]
    assert store.claim() == []  # the others are followers now
    poison(store, broken, HALF_LEASED)
    ended = [
        AttemptEnd(attempts[job_id], Outcome(kind=OutcomeKind.SUCCESS))
        for job_id in (holder, other_holder)
    ]
    assert store.store.finish("w1", ended).lost == ()
    assert [each.job_id for each in store.claim()] == [other_behind]
    assert [each.job_id for each in store.store.promote_stalled_lanes("", 10).aside] == [broken]
    assert (store.job(broken).state, store.claim()) == (State.PAUSED, [])
    store.store.operate(OperatorVerb.CANCEL, [broken], "ann", None)
    assert [each.job_id for each in store.claim()] == [behind]


@pytest.mark.requirement("S4.3", "P7")
def test_a_broken_next_job_of_a_stalled_lane_is_paused_in_its_place(
    postgres_store: StoreUnderTest,
) -> None:
    store = postgres_store
    holder, broken, _ = (store.add(target="lane") for _ in range(3))
    attempt = store.claim_one()
    assert (attempt.job_id, store.claim()) == (holder, [])
    poison(store, broken, {"postgres": "priority = -32768"})
    assert store.end(attempt, OutcomeKind.SUCCESS)
    assert [each.job_id for each in store.store.promote_stalled_lanes("", 10).aside] == [broken]
    assert state_in_row(store, broken) == State.PAUSED
    assert store.store.lanes("", 10)[0].head == broken
    assert store.claim() == []


@pytest.mark.requirement("S3.3", "P7")
@pytest.mark.parametrize("verb", ["ready", "swept"])
def test_a_broken_row_behind_more_than_a_page_of_others_is_found(
    store: StoreUnderTest, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freehold.store.verbs.set_aside._ROWS", 2)
    jobs = [store.add() for _ in range(7)]
    if verb == "swept":
        store.claim()
        store.advance(LEASE_SECONDS)
    poison(store, jobs[5], FORBIDDEN)
    set_aside = {
        "ready": lambda: store.store.set_aside_ready("default"),
        "swept": store.store.set_aside_swept,
    }[verb]
    assert [each.job_id for each in set_aside()] == [jobs[5]]
