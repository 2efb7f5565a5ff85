"""What can be seen: jobs, their story, pages, depth and counts."""

from __future__ import annotations

import pytest

from freehold.errors import BadInput
from freehold.model.history import EventKind, timeline
from freehold.model.job import ErrorInfo
from freehold.model.limit import Limit
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.model.policy import DEFAULT_POLICY
from freehold.model.state import NEEDS_LANE, Stage, State
from freehold.store.stage_sql import stage_byte
from freehold.store.types import PAGE_LIMIT, JobFilter
from freehold.store.verbs import queries as reading
from tests.stores import LEASE_SECONDS, StoreUnderTest, key_of


def one_of_each(store: StoreUnderTest) -> dict[State, int]:
    """A job in each state, and none that could still be claimed but the queued one."""
    made = {}
    endings = {
        State.PAUSED: OutcomeKind.PAUSE,
        State.SUCCEEDED: OutcomeKind.SUCCESS,
        State.FAILED: OutcomeKind.FAIL,
        State.CANCELED: OutcomeKind.CANCEL,
    }
    for state, kind in endings.items():
        made[state] = store.add()
        assert store.end(store.claim_one(), kind)
    made[State.ASSIGNED] = store.add()
    store.claim_one()
    made[State.RUNNING] = store.add()
    store.store.mark_running("w1", [key_of(store.claim_one())])
    made[State.PENDING] = store.add(pending=True)
    made[State.QUEUED] = store.add()
    return made


def page_ids(store: StoreUnderTest, **fields: object) -> list[int]:
    """All pages of a filter, walked to the end."""
    seen: list[int] = []
    before = None
    while True:
        page = store.store.page(JobFilter(before=before, **fields))  # type: ignore[arg-type]
        seen += [job.id for job in page.jobs]
        if page.next is None:
            return seen
        before = page.next


# -- jobs and their story --------------------------------------------------------------------


@pytest.mark.requirement("S2.3", "S0.1")
def test_every_state_can_be_read(store: StoreUnderTest) -> None:
    made = one_of_each(store)
    assert set(made) == set(State)
    jobs = store.store.read([*made.values(), 4711])
    assert {state: jobs[job_id].state for state, job_id in made.items()} == {s: s for s in State}
    assert len(jobs) == len(State)
    assert store.store.read([]) == {}


@pytest.mark.requirement("S2.5")
def test_the_events_of_a_job_are_complete_and_in_order(store: StoreUnderTest) -> None:
    job_id = store.add(pending=True)
    store.advance(1.0)
    store.store.operate(OperatorVerb.SUBMIT, [job_id], "ann", "go")
    store.advance(1.0)
    attempt = store.claim_one("w1")
    store.advance(1.0)
    store.store.mark_running("w1", [key_of(attempt)])
    store.advance(1.0)
    assert store.end(attempt, OutcomeKind.ERROR, error=ErrorInfo("E", "no"), delay_seconds=1.0)
    store.advance(1.0)
    store.store.make_ready(10)
    store.claim_one("w2")
    store.advance(LEASE_SECONDS)
    store.store.recover(10, 0.0)
    store.advance(3600.0)
    store.store.make_ready(10)
    last = store.claim_one("w3")
    store.advance(1.0)
    store.store.mark_running("w3", [key_of(last)])
    store.advance(1.0)
    assert store.end(last, OutcomeKind.SUCCESS)
    life = timeline(store.job(job_id), store.store.events(job_id))
    assert [(moment.kind, moment.by, moment.attempt) for moment in life] == [
        (EventKind.CREATED, None, None),
        (EventKind.ENQUEUED, "ann", None),
        (EventKind.LEASED, "w1", 1),
        (EventKind.STARTED, "w1", 1),
        (EventKind.RETRIED, "w1", 1),
        (EventKind.LEASED, "w2", 2),
        (EventKind.LEASE_LOST, "w2", 2),
        (EventKind.LEASED, "w3", 3),
        (EventKind.STARTED, "w3", 3),
        (EventKind.SUCCEEDED, "w3", 3),
    ]
    assert [moment.at for moment in life] == sorted(moment.at for moment in life)
    assert (life[0].state, life[4].error) == (State.PENDING, ErrorInfo("E", "no"))


@pytest.mark.requirement("S2.5")
def test_an_event_has_the_lease_that_it_ended(store: StoreUnderTest) -> None:
    store.add()
    leased_at = store.now()
    attempt = store.claim_one()
    store.advance(2.0)
    store.store.mark_running("w1", [key_of(attempt)])
    started_at = store.now()
    store.advance(3.0)
    assert store.end(attempt, OutcomeKind.SNOOZE, delay_seconds=9.0, reason="later")
    event = store.store.events(attempt.job_id)[-1]
    assert (event.token, event.attempt, event.by) == (attempt.token, 1, "w1")
    assert (event.leased_at, event.started_at, event.at) == (leased_at, started_at, store.now())
    assert (event.kind, event.reason, event.state) == (EventKind.SNOOZED, "later", State.QUEUED)
    assert event.due_at == store.job(attempt.job_id).run_at


@pytest.mark.requirement("S2.5")
def test_the_events_of_a_job_are_its_own(store: StoreUnderTest) -> None:
    first, second = store.add(), store.add()
    store.store.operate(OperatorVerb.PAUSE, [first, second], "ann", None)
    assert [event.job_id for event in store.store.events(first)] == [first]
    assert store.store.events(4711) == []


def test_the_newest_events_of_a_job_are_read_oldest_first(store: StoreUnderTest) -> None:
    job_id = store.add()
    for verb in (OperatorVerb.PAUSE, OperatorVerb.RESUME, OperatorVerb.PAUSE):
        store.store.operate(verb, [job_id], "ann", None)
    every = store.store.events(job_id)
    assert [event.kind for event in every] == [
        EventKind.PAUSED,
        EventKind.RESUMED,
        EventKind.PAUSED,
    ]
    assert store.store.events(job_id, 2) == every[1:]
    assert store.store.events(job_id, newest=9) == every


# -- pages -----------------------------------------------------------------------------------


@pytest.mark.parametrize("state", State)
def test_a_page_of_one_state_shows_all_of_it_and_nothing_else(
    store: StoreUnderTest, state: State
) -> None:
    made = one_of_each(store)
    assert page_ids(store, states=frozenset({state})) == [made[state]]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 50])
def test_pages_together_show_everything_once_newest_first(
    store: StoreUnderTest, limit: int
) -> None:
    made = one_of_each(store)
    newest_first = sorted(made.values(), reverse=True)
    assert page_ids(store, limit=limit) == newest_first
    some = frozenset({State.FAILED, State.RUNNING, State.QUEUED, State.SUCCEEDED})
    wanted = sorted((made[state] for state in some), reverse=True)
    assert page_ids(store, limit=limit, states=some) == wanted


def test_a_failed_job_that_blocks_its_lane_is_among_the_failed(store: StoreUnderTest) -> None:
    job_id = store.add(target="lane")
    assert store.end(store.claim_one(), OutcomeKind.FAIL)
    assert page_ids(store, states=frozenset({State.FAILED})) == [job_id]


@pytest.mark.parametrize(
    "only", [{"queue": "q"}, {"task": "rare"}, {"target": "lane"}, {"tag": "vip"}]
)
def test_a_filter_finds_the_live_and_the_finished(
    store: StoreUnderTest, only: dict[str, str]
) -> None:
    fields: dict[str, object] = {("tags" if k == "tag" else k): v for k, v in only.items()}
    if "tag" in only:
        fields["tags"] = ("other", "vip")
    queue = only.get("queue", "default")
    done = store.add(**fields)
    assert store.end(store.claim_one(queue=queue), OutcomeKind.SUCCESS)
    store.add(tags=("vip2",))
    live = store.add(**fields)
    assert page_ids(store, **only) == [live, done]


@pytest.mark.parametrize("limit", [1, 2, 50])
def test_rare_jobs_are_all_found_though_a_page_reads_only_so_far(
    store: StoreUnderTest, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page looks at three live and three finished jobs; the live ones lie far apart."""
    monkeypatch.setattr(reading, "PAGE_WINDOW", 3)
    rare = []
    for number in range(17):
        job_id = store.add(task="rare" if number % 5 == 0 else "t")
        rare += [job_id] if number % 5 == 0 else []
        kind = OutcomeKind.SUCCESS if number % 8 else OutcomeKind.PAUSE
        assert store.end(store.claim_one(), kind)
    assert page_ids(store, task="rare", limit=limit) == rare[::-1]


@pytest.mark.parametrize("limit", [0, -1, PAGE_LIMIT + 1])
def test_a_page_without_bounds_is_refused(store: StoreUnderTest, limit: int) -> None:
    with pytest.raises(BadInput, match=f"1 to {PAGE_LIMIT}"):
        store.store.page(JobFilter(limit=limit))


# -- depth and counts ------------------------------------------------------------------------


@pytest.mark.requirement("P12", "S1.1")
def test_depth_counts_claimable_jobs_only(store: StoreUnderTest) -> None:
    one_of_each(store)
    store.add(delay_seconds=60.0)
    store.add(queue="b")
    store.add(queue="unasked")
    assert store.store.depth(["default", "b"]) == 2
    assert len(store.claim()) + len(store.claim(queue="b")) == 2
    assert store.store.depth(["default", "b"]) == 0
    assert store.store.depth([]) == 0


@pytest.mark.requirement("P12")
def test_depth_stops_counting_at_its_bound(store: StoreUnderTest) -> None:
    for queue in ("a", "a", "a", "b", "b"):
        store.add(queue=queue)
    assert [store.store.depth(["a", "b"], bound) for bound in (2, 3, 4, 5, 9)] == [2, 3, 4, 5, 5]


def test_counts_are_by_stage(store: StoreUnderTest) -> None:
    one_of_each(store)
    store.add(delay_seconds=60.0)
    store.add(target="lane", queue="q")
    store.add(target="lane", queue="q")
    assert store.end(store.claim_one(queue="q"), OutcomeKind.FAIL)
    store.claim(queue="q")
    store.add(task="strange", queue="q")
    store.claim(queue="q", tasks=frozenset())
    counts = store.store.counts()
    assert (counts.ready, counts.waiting, counts.leased, counts.paused) == (1, 1, 2, 1)
    assert (counts.pending, counts.failed, counts.following, counts.parked) == (1, 1, 1, 1)


def test_jobs_held_back_by_a_limit_key_or_a_paused_lane_are_counted(store: StoreUnderTest) -> None:
    store.store.set_key_limit("vendor", Limit(0))
    store.store.pause_lane("lane", "ann", "audit", None)
    store.add(limit_key="vendor"), store.add(limit_key="vendor")
    store.add(target="lane")
    assert store.claim() == []
    counts = store.store.counts()
    assert (counts.limited, counts.lane_paused, counts.ready) == (2, 1, 0)


@pytest.mark.parametrize("stage", Stage)
def test_a_live_job_in_any_stage_is_counted_once(store: StoreUnderTest, stage: Stage) -> None:
    store.add(target="lane" if stage in NEEDS_LANE else None)
    if stage is Stage.LEASED:
        store.claim_one()
    else:
        store.sql(f"update {{s}}job set stage = '{stage_byte(stage)}'")
    counts = store.store.counts()
    assert sum(getattr(counts, name) for name in counts.__struct_fields__) == 1
    (queue,) = store.store.queues()
    assert (queue.name, queue.ready + queue.leased + queue.not_ready) == ("default", 1)


@pytest.mark.parametrize("column", ["tags", "progress", "policy"])
@pytest.mark.parametrize("text", ["7", "[1]", '{"done": "x"}', "1e400"])
def test_a_document_that_cannot_be_read_hides_no_job(
    store: StoreUnderTest, column: str, text: str
) -> None:
    """Other programs write to the database too: such a tag or progress counts as none."""
    job_id = store.add()
    store.sql(f"update {{s}}job set {column} = '{text}'")
    job = store.store.read([job_id])[job_id]
    assert (job.tags, job.progress, job.policy) == ((), None, DEFAULT_POLICY)
