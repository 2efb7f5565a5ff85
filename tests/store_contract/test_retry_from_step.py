"""Retry from a step: a job forgets this step and the later ones, and runs again."""

from __future__ import annotations

import pytest

from freehold.errors import BadInput, IllegalTransition, JobNotFound, UniqueKeyTaken
from freehold.model.audit import AuditFilter, Author
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.model.state import Stage
from freehold.operator import Operator
from freehold.store.types import NewStep
from freehold.store.verbs.operator import retry_from
from tests.stores import StoreUnderTest, key_of

NAMES = ("charge", "book", "ship")


def _job_with_steps(store: StoreUnderTest, kind: OutcomeKind, **fields: object) -> int:
    """`ship` is written before `book`, and comes after it by its number."""
    job_id = store.add(**fields)
    attempt = store.claim_one()
    for name, number in (("charge", 1), ("ship", 3), ("book", 2)):
        new = NewStep(key_of(attempt), name, number, value=b"1")
        assert store.store.put_steps(attempt.owner, [new]) == ()
    assert store.end(attempt, kind)
    return job_id


def _names(store: StoreUnderTest, job_id: int) -> list[str]:
    return [step.name for step in store.store.read_steps(job_id)]


@pytest.mark.requirement("N8")
@pytest.mark.parametrize("target", [None, "lane"])
@pytest.mark.parametrize(
    ("kind", "event"),
    [
        (OutcomeKind.SUCCESS, "retried_by_hand"),
        (OutcomeKind.FAIL, "retried_by_hand"),
        (OutcomeKind.PAUSE, "resumed"),
    ],
)
def test_a_job_runs_again_without_the_step_and_the_later_ones(
    store: StoreUnderTest, kind: OutcomeKind, event: str, target: str | None
) -> None:
    job_id = _job_with_steps(store, kind, target=target)
    operator = Operator(store.store)
    (result,) = operator.retry(job_id, by="ann", reason="wrong price", from_step="book")
    assert (result.id, result.status, result.state) == (job_id, "done", "queued")
    assert _names(store, job_id) == ["charge"]
    last = store.store.events(job_id)[-1]
    assert (last.kind, last.by, last.reason) == (event, "ann", "from step 'book': wrong price")
    (entry,) = operator.audit(AuditFilter()).entries
    assert (entry.verb, entry.by, entry.reason) == ("retry", "ann", "wrong price")
    assert entry.after == {"state": "queued", "from_step": "book"}
    again = store.claim_one()
    assert (again.job_id, again.policy.has_steps) == (job_id, True)


def test_a_paused_job_that_waited_runs_at_once(store: StoreUnderTest) -> None:
    """What it waited for was one of the steps that it forgets."""
    job_id = store.add()
    attempt = store.claim_one()
    assert store.store.await_signal(attempt.owner, key_of(attempt), "paid", 1, 3600.0)
    fields = {"delay_seconds": 3600.0, "waits_for": "signal/paid"}
    assert store.end(attempt, OutcomeKind.SUSPEND, **fields)
    store.store.operate(OperatorVerb.PAUSE, [job_id], "ann", None)
    Operator(store.store).retry(job_id, by="ann", from_step="paid")
    assert (_names(store, job_id), store.job(job_id).waits_for) == ([], None)
    assert store.claim_one().job_id == job_id


def test_used_up_attempts_of_a_paused_job_begin_again(store: StoreUnderTest) -> None:
    job_id = _job_with_steps(store, OutcomeKind.PAUSE, max_attempts=1)
    Operator(store.store).retry(job_id, by="ann", from_step="charge")
    assert store.claim_one().number == 1


def test_bad_input_changes_nothing(store: StoreUnderTest) -> None:
    failed = _job_with_steps(store, OutcomeKind.FAIL)
    delayed = _job_with_steps(store, OutcomeKind.SNOOZE)
    plain = store.add()
    before, operator = store.everything(), Operator(store.store)
    with pytest.raises(BadInput, match="its steps are 'charge', 'book', 'ship'"):
        operator.retry(failed, by="ann", from_step="chargé")
    with pytest.raises(BadInput, match=f"job {plain} has no step 'charge': it has stored no steps"):
        operator.retry(plain, by="ann", from_step="charge")
    with pytest.raises(BadInput, match="give one job, not 2"):
        operator.retry(failed, delayed, by="ann", from_step="charge")
    with pytest.raises(BadInput, match="the name of a step"):
        operator.retry(failed, by="ann", from_step="")
    with pytest.raises(JobNotFound):
        operator.retry(999_999, by="ann", from_step="charge")
    with pytest.raises(IllegalTransition, match="only a paused or finished job can run again from"):
        operator.retry(delayed, by="ann", from_step="charge")
    after = store.everything()
    assert after == before


def test_a_taken_unique_key_keeps_the_steps(store: StoreUnderTest) -> None:
    job_id = _job_with_steps(store, OutcomeKind.FAIL, unique_key="k")
    store.add(unique_key="k")
    before = store.everything()
    with pytest.raises(UniqueKeyTaken):
        Operator(store.store).retry(job_id, by="ann", from_step="charge")
    after = store.everything()
    assert after == before


@pytest.mark.parametrize("kind", [OutcomeKind.FAIL, OutcomeKind.PAUSE])
def test_a_job_that_another_operator_has_started_meanwhile_keeps_its_steps(
    store: StoreUnderTest, kind: OutcomeKind
) -> None:
    """The operator's program may freeze after its look, while a worker runs the job again."""
    job_id, session = _job_with_steps(store, kind), store.store.session
    retrying = retry_from(job_id, "charge", Author("ann", "python"))
    group = next(retrying)
    while not group.writes:
        group = retrying.send(session.execute(group))
    verb = OperatorVerb.RESUME if kind is OutcomeKind.PAUSE else OperatorVerb.RETRY
    store.store.operate(verb, [job_id], "bob", None)
    store.claim_one()
    before = store.everything()
    look_again = retrying.send(session.execute(group))
    after = store.everything()
    assert after == before
    look_at_steps = retrying.send(session.execute(look_again))
    with pytest.raises(IllegalTransition, match="is assigned"):
        retrying.send(session.execute(look_at_steps))
    assert (_names(store, job_id), store.job(job_id).stage) == (list(NAMES), Stage.LEASED)
