"""What people do with jobs: the state machine's arrows, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from freehold.errors import IllegalTransition, JobNotFound
from freehold.model.history import EventKind
from freehold.model.job import NewJob
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.store.verbs import operator as operating
from tests.stores import LEASE_SECONDS, StoreUnderTest, key_of

Maker = Callable[[StoreUnderTest], int]


def _running(store: StoreUnderTest) -> int:
    job_id = store.add()
    store.store.mark_running("w1", [key_of(store.claim_one())])
    return job_id


def _ended(kind: OutcomeKind) -> Maker:
    def make(store: StoreUnderTest) -> int:
        job_id = store.add()
        assert store.end(store.claim_one(), kind)
        return job_id

    return make


def _assigned(store: StoreUnderTest) -> int:
    store.add()
    return store.claim_one().job_id


STATES: dict[str, Maker] = {
    "pending": lambda store: store.add(pending=True),
    "queued": lambda store: store.add(),
    "scheduled": lambda store: store.add(delay_seconds=60.0),
    "assigned": _assigned,
    "running": _running,
    "paused": _ended(OutcomeKind.PAUSE),
    "succeeded": _ended(OutcomeKind.SUCCESS),
    "failed": _ended(OutcomeKind.FAIL),
    "canceled": _ended(OutcomeKind.CANCEL),
}
#: verb -> state -> what is answered, and the state afterwards.
ARROWS: dict[OperatorVerb, dict[str, tuple[str, str]]] = {
    OperatorVerb.CANCEL: {
        "pending": ("done", "canceled"),
        "queued": ("done", "canceled"),
        "scheduled": ("done", "canceled"),
        "assigned": ("requested", "assigned"),
        "running": ("requested", "running"),
        "paused": ("done", "canceled"),
        "succeeded": ("already", "succeeded"),
        "failed": ("done", "canceled"),
        "canceled": ("already", "canceled"),
    },
    OperatorVerb.PAUSE: {
        "queued": ("done", "paused"),
        "scheduled": ("done", "paused"),
        "assigned": ("requested", "assigned"),
        "running": ("requested", "running"),
        "paused": ("already", "paused"),
    },
    OperatorVerb.RESUME: {
        "queued": ("already", "queued"),
        "scheduled": ("already", "queued"),
        "assigned": ("already", "assigned"),
        "running": ("already", "running"),
        "paused": ("done", "queued"),
        "failed": ("done", "queued"),
    },
    OperatorVerb.RETRY: {
        "succeeded": ("done", "queued"),
        "failed": ("done", "queued"),
        "canceled": ("done", "queued"),
    },
    OperatorVerb.SUBMIT: {
        "pending": ("done", "queued"),
        "queued": ("already", "queued"),
        "scheduled": ("already", "queued"),
        "assigned": ("already", "assigned"),
        "running": ("already", "running"),
    },
}
POSSIBLE = [(verb, state) for verb, arrows in ARROWS.items() for state in arrows]
IMPOSSIBLE = [
    (verb, state) for verb in OperatorVerb for state in STATES if state not in ARROWS[verb]
]


@pytest.mark.requirement("S0.1", "P5", "S4.8")
@pytest.mark.parametrize(("verb", "state"), POSSIBLE)
def test_the_result_of_an_action_is_what_is_stored(
    store: StoreUnderTest, verb: OperatorVerb, state: str
) -> None:
    job_id = STATES[state](store)
    answer = store.store.operate(verb, [job_id], "ann", "because")[0]
    assert (answer.id, (answer.status, str(answer.state))) == (job_id, ARROWS[verb][state])
    assert store.state(job_id) == str(answer.state)


@pytest.mark.requirement("S0.1")
@pytest.mark.parametrize(("verb", "state"), IMPOSSIBLE)
def test_an_impossible_transition_is_refused_and_changes_nothing(
    store: StoreUnderTest, verb: OperatorVerb, state: str
) -> None:
    job_id = STATES[state](store)
    before = store.everything()
    with pytest.raises(IllegalTransition, match=f"job {job_id} is "):
        store.store.operate(verb, [job_id], "ann", None)
    assert store.everything() == before


@pytest.mark.requirement("S0.1")
def test_one_impossible_wish_stops_all_of_a_call(store: StoreUnderTest) -> None:
    ended = STATES["succeeded"](store)
    queued = store.add()
    before = store.everything()
    with pytest.raises(IllegalTransition):
        store.store.operate(OperatorVerb.PAUSE, [queued, ended], "ann", None)
    with pytest.raises(JobNotFound, match="4711"):
        store.store.operate(OperatorVerb.PAUSE, [queued, 4711], "ann", None)
    assert store.everything() == before


@pytest.mark.requirement("S2.5")
@pytest.mark.parametrize(
    ("verb", "state", "kind"),
    [
        (OperatorVerb.CANCEL, "queued", EventKind.CANCELED),
        (OperatorVerb.CANCEL, "failed", EventKind.CANCELED),
        (OperatorVerb.CANCEL, "running", EventKind.CANCEL_REQUESTED),
        (OperatorVerb.PAUSE, "queued", EventKind.PAUSED),
        (OperatorVerb.PAUSE, "running", EventKind.PAUSE_REQUESTED),
        (OperatorVerb.RESUME, "paused", EventKind.RESUMED),
        (OperatorVerb.RESUME, "failed", EventKind.RESUMED),
        (OperatorVerb.RETRY, "succeeded", EventKind.RETRIED_BY_HAND),
        (OperatorVerb.SUBMIT, "pending", EventKind.ENQUEUED),
    ],
)
def test_events_name_the_operator(
    store: StoreUnderTest, verb: OperatorVerb, state: str, kind: EventKind
) -> None:
    job_id = STATES[state](store)
    store.advance(1.0)
    answer = store.store.operate(verb, [job_id], "ann", "because")[0]
    event = store.store.events(job_id)[-1]
    assert (event.kind, event.by, event.reason) == (kind, "ann", "because")
    assert (event.at, event.state) == (store.now(), answer.state)


@pytest.mark.requirement("P5", "P7")
def test_a_resume_gives_fresh_attempts_only_where_none_are_left(store: StoreUnderTest) -> None:
    spent, unspent = store.add(max_attempts=1), store.add(max_attempts=5)
    for attempt in store.claim():
        assert store.end(attempt, OutcomeKind.FAIL)
    store.store.operate(OperatorVerb.RESUME, [spent, unspent], "ann", None)
    assert [(a.job_id, a.number) for a in store.claim()] == [(spent, 1), (unspent, 2)]


@pytest.mark.requirement("P5", "P7")
def test_a_retry_has_the_whole_budget_again(store: StoreUnderTest) -> None:
    job_id = store.add(max_attempts=3, args=b'{"n": 1}', priority=4, tags=("x",))
    first = store.claim_one()
    assert store.end(first, OutcomeKind.FAIL)
    store.store.operate(OperatorVerb.RETRY, [job_id], "ann", None)
    again = store.claim_one()
    assert (again.job_id, again.number, again.lost_attempts) == (job_id, 1, 0)
    assert (again.args, again.priority, again.max_attempts) == (first.args, 4, 3)
    assert store.job(job_id).tags == ("x",)


@pytest.mark.requirement("P5", "P7")
@pytest.mark.parametrize("verb", [OperatorVerb.RESUME, OperatorVerb.RETRY])
@pytest.mark.parametrize("target", [None, "lane"])
def test_lost_workers_are_forgiven_with_the_attempts(
    store: StoreUnderTest, verb: OperatorVerb, target: str | None
) -> None:
    job_id = store.add(max_attempts=1, target=target)
    store.claim_one()
    store.advance(LEASE_SECONDS)
    store.store.recover(10, 0.0)
    assert (store.state(job_id), store.job(job_id).lost_attempts) == ("failed", 1)
    store.store.operate(verb, [job_id], "ann", None)
    again = store.claim_one()
    assert (again.number, again.lost_attempts) == (1, 0)


@pytest.mark.requirement("P5")
def test_a_job_that_came_back_is_no_longer_in_the_history(store: StoreUnderTest) -> None:
    job_id = STATES["succeeded"](store)
    store.store.operate(OperatorVerb.RETRY, [job_id], "ann", None)
    assert store.sql("select id from {s}history") == []
    assert store.job(job_id).report is None


@pytest.mark.requirement("S4.8", "P5")
def test_a_resumed_job_runs_at_once_under_a_fresh_lease(store: StoreUnderTest) -> None:
    job_id = store.add(target="lane")
    old = store.claim_one()
    store.store.operate(OperatorVerb.CANCEL, [job_id], "ann", None)
    assert store.end(old, OutcomeKind.ERROR)
    assert store.state(job_id) == "paused"
    store.store.operate(OperatorVerb.RESUME, [job_id], "ann", None)
    new = store.claim_one("w2")
    assert new.token > old.token
    lease = store.job(job_id).lease
    assert lease is not None
    assert (lease.owner, lease.leased_at) == ("w2", store.now())


@pytest.mark.requirement("P10")
@pytest.mark.parametrize("verb", [OperatorVerb.CANCEL, OperatorVerb.PAUSE])
def test_a_job_claimed_between_read_and_write_gets_a_stop_request(
    store: StoreUnderTest, verb: OperatorVerb
) -> None:
    """The operator's program may freeze after its look: it holds no lock, and looks again."""
    job_id = store.add()
    steps = operating.operate(verb, [job_id], "ann", None)
    session = store.store.session
    look = next(steps)
    assert not look.writes
    write = steps.send(session.execute(look))
    store.claim_one()
    look_again = steps.send(session.execute(write))
    request = steps.send(session.execute(look_again))
    with pytest.raises(StopIteration) as end:
        steps.send(session.execute(request))
    assert [answer.status for answer in end.value.value] == ["requested"]
    assert store.state(job_id) == "assigned"


def test_one_job_named_twice_is_changed_once_and_returned_twice(store: StoreUnderTest) -> None:
    job_id = store.add()
    answers = store.store.operate(OperatorVerb.CANCEL, [job_id, job_id], "ann", None)
    assert [answer.id for answer in answers] == [job_id, job_id]
    assert len(store.store.events(job_id)) == 1


@pytest.mark.parametrize("state", STATES)
def test_a_leased_job_cannot_be_deleted(store: StoreUnderTest, state: str) -> None:
    job_id = STATES[state](store)
    before = store.everything()
    deleted = store.store.delete([job_id, 4711])
    if state in ("assigned", "running"):
        assert deleted == []
        assert store.everything() == before
    else:
        assert deleted == [job_id]
        assert store.store.read([job_id]) == {}
        assert store.store.events(job_id) == []


@pytest.mark.parametrize("count", [1, 2])
def test_a_resumed_job_that_never_had_a_time_is_due_at_no_time(
    store: StoreUnderTest, count: int
) -> None:
    """However it was stored: one plain job has a statement of its own."""
    stored = store.store.enqueue([NewJob(task="t") for _ in range(count)])
    for verb in (OperatorVerb.PAUSE, OperatorVerb.RESUME):
        store.advance(1.0)
        store.store.operate(verb, [stored[0].id], "ann", None)
    assert [event.due_at for event in store.store.events(stored[0].id)] == [None, None]
