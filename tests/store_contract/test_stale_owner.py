"""A stale owner loses: on every verb, in every way of being stale, and the verb returns it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from freehold.model.flow import FlowKind, NewFlow, NewNode
from freehold.model.job import Attempt, NewJob
from freehold.model.job_log import Progress
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.types import AttemptEnd, Gathered, LeaseKey, LogChunk, NewLogLine, NewStep
from tests.stores import LEASE_SECONDS, StoreUnderTest, key_of

OwnerVerb = Callable[[StoreUnderTest, Attempt], tuple[int, ...]]
Staleness = Callable[[StoreUnderTest, Attempt], Attempt]


# -- what an owner can do; each returns the leases that the verb reported as lost -------------


def _mark_running(store: StoreUnderTest, attempt: Attempt) -> tuple[int, ...]:
    return store.store.mark_running(attempt.owner, [key_of(attempt)])


def _renew(store: StoreUnderTest, attempt: Attempt) -> tuple[int, ...]:
    renewed = store.store.renew(attempt.owner, [key_of(attempt)], LEASE_SECONDS)
    assert attempt.job_id not in renewed.held
    return renewed.lost


def _give_back(store: StoreUnderTest, attempt: Attempt) -> tuple[int, ...]:
    returned = store.store.give_back(attempt.owner, [attempt])
    assert returned.decisions == {}
    return returned.lost


def _finish(kind: OutcomeKind) -> OwnerVerb:
    def finish(store: StoreUnderTest, attempt: Attempt) -> tuple[int, ...]:
        outcome = Outcome(kind=kind, result=b"1" if kind is OutcomeKind.SUCCESS else None)
        finished = store.store.finish(attempt.owner, [AttemptEnd(attempt, outcome)])
        assert finished.decisions == {}
        return finished.lost

    return finish


def _note(store: StoreUnderTest, attempt: Attempt) -> tuple[int, ...]:
    chunk = LogChunk(key_of(attempt), Progress(1.0), (NewLogLine(1, "I am still here", 0.0),))
    return store.store.append_log(attempt.owner, [chunk])


def _put_steps(store: StoreUnderTest, attempt: Attempt) -> tuple[int, ...]:
    steps = [NewStep(key_of(attempt), name, 1, value=b"1") for name in ("charge", "book")]
    return tuple(lease.job_id for lease in store.store.put_steps(attempt.owner, steps))


def _put_step_within(store: StoreUnderTest, attempt: Attempt) -> tuple[int, ...]:
    kept = store.store.put_step_within(attempt.owner, NewStep(key_of(attempt), "book", 1))
    return () if kept else (attempt.job_id,)


def _await_signal(store: StoreUnderTest, attempt: Attempt) -> tuple[int, ...]:
    found = store.store.await_signal(attempt.owner, key_of(attempt), "paid", 1, 60.0)
    return (attempt.job_id,) if found is None else ()


def _finish_within(store: StoreUnderTest, attempt: Attempt) -> tuple[int, ...]:
    """Outside of a transaction: what it does not write needs no rollback to stay unwritten."""
    chunk = LogChunk(key_of(attempt), Progress(1.0), (NewLogLine(1, "I am done", 0.0),))
    ended = AttemptEnd(attempt, Outcome(kind=OutcomeKind.SUCCESS))
    kept = store.store.finish_within(attempt.owner, ended, chunk)
    return () if kept else (attempt.job_id,)


def _gather(store: StoreUnderTest, attempt: Attempt) -> tuple[int, ...]:
    jobs = [NewJob(task="child")]
    found = store.store.gather(attempt.owner, key_of(attempt), "pages", 1, jobs)
    return (attempt.job_id,) if found is None else ()


def _finish_gather(store: StoreUnderTest, attempt: Attempt) -> tuple[int, ...]:
    """Of a flow that has closed: it has no members."""
    new = NewFlow(kind=FlowKind.BATCH, name="closed")
    flow, _ = store.store.create_batch(new, (), within=False)
    store.store.advance_flows()
    found = Gathered(flow, (), None)
    kept = store.store.finish_gather(attempt.owner, key_of(attempt), "pages", found, False)
    store.sql(f"delete from {{s}}flow where id = {flow}")
    return (attempt.job_id,) if kept is None else ()


def _add_members(store: StoreUnderTest, attempt: Attempt) -> tuple[int, ...]:
    new = NewFlow(kind=FlowKind.BATCH, name="open", sealed=False)
    flow, _ = store.store.create_batch(new, (), within=False)
    jobs = [NewJob(task="more")]
    added = store.store.add_members(flow, jobs, attempt.owner, key_of(attempt))
    store.sql(f"delete from {{s}}flow where id = {flow}")
    return (attempt.job_id,) if added is None else ()


def _add_nodes(store: StoreUnderTest, attempt: Attempt) -> tuple[int, ...]:
    new = NewFlow(kind=FlowKind.BATCH, name="open", sealed=False)
    flow, _ = store.store.create_batch(new, (), within=False)
    nodes = [NewNode(number=1, name="more", job=NewJob(task="more"))]
    added = store.store.add_nodes(flow, nodes, attempt.owner, key_of(attempt))
    store.sql(f"delete from {{s}}flow where id = {flow}")
    return (attempt.job_id,) if added is None else ()


VERBS: dict[str, OwnerVerb] = {
    "mark_running": _mark_running,
    "renew": _renew,
    "append_log": _note,
    "put_steps": _put_steps,
    "put_step_within": _put_step_within,
    "await_signal": _await_signal,
    "gather": _gather,
    "finish_gather": _finish_gather,
    "add_members": _add_members,
    "add_nodes": _add_nodes,
    "finish_within": _finish_within,
    "give_back": _give_back,
    **{kind.value: _finish(kind) for kind in OutcomeKind},
}


# -- how a lease is lost; each answers with the attempt as its former owner still believes it -


def _wrong_token(store: StoreUnderTest, attempt: Attempt) -> Attempt:
    return msgspec.structs.replace(attempt, token=attempt.token + 1)


def _wrong_owner(store: StoreUnderTest, attempt: Attempt) -> Attempt:
    return msgspec.structs.replace(attempt, owner="intruder")


def _expired(store: StoreUnderTest, attempt: Attempt) -> Attempt:
    store.advance(LEASE_SECONDS)  # to the microsecond: the lease excludes its end
    return attempt


def _declared_dead(store: StoreUnderTest, attempt: Attempt) -> Attempt:
    assert store.store.expire_leases(attempt.owner) == 1
    return attempt


def _recovered(store: StoreUnderTest, attempt: Attempt) -> Attempt:
    store.advance(LEASE_SECONDS)
    assert len(store.store.recover(10, 0.0)) == 1
    return attempt


def _taken_by(owner: str) -> Staleness:
    def taken(store: StoreUnderTest, attempt: Attempt) -> Attempt:
        _recovered(store, attempt)
        store.advance(3600.0)
        store.store.make_ready(10)
        assert store.claim_one(owner).job_id == attempt.job_id
        return attempt

    return taken


def _finished(store: StoreUnderTest, attempt: Attempt) -> Attempt:
    assert store.end(attempt, OutcomeKind.SUCCESS)
    return attempt


def _given_back(store: StoreUnderTest, attempt: Attempt) -> Attempt:
    assert store.store.give_back(attempt.owner, [attempt]).lost == ()
    return attempt


def _paused(store: StoreUnderTest, attempt: Attempt) -> Attempt:
    assert store.end(attempt, OutcomeKind.PAUSE)
    return attempt


def _deleted(store: StoreUnderTest, attempt: Attempt) -> Attempt:
    _finished(store, attempt)
    assert store.store.delete([attempt.job_id]) == [attempt.job_id]
    return attempt


def _run_again(store: StoreUnderTest, attempt: Attempt) -> Attempt:
    _finished(store, attempt)
    next_in_lane = store.claim_one("w2")
    store.store.operate(OperatorVerb.RETRY, [attempt.job_id], "ann", None)
    assert store.end(next_in_lane, OutcomeKind.SUCCESS)
    assert store.claim_one(attempt.owner).job_id == attempt.job_id
    return attempt


WAYS_TO_BE_STALE: dict[str, Staleness] = {
    "wrong_token": _wrong_token,
    "wrong_owner": _wrong_owner,
    "expired": _expired,
    "declared_dead": _declared_dead,
    "recovered": _recovered,
    "taken_by_another": _taken_by("w2"),
    "taken_by_itself": _taken_by("w1"),
    "finished": _finished,
    "given_back": _given_back,
    "paused": _paused,
    "deleted": _deleted,
    "run_again": _run_again,
}


@pytest.mark.requirement("S0.3", "S0.5", "S0.6", "S0.12", "S0.13", "S3.4", "P1", "N8")
@pytest.mark.parametrize("way", WAYS_TO_BE_STALE)
@pytest.mark.parametrize("verb", VERBS)
def test_a_stale_owner_loses(store: StoreUnderTest, verb: str, way: str) -> None:
    store.add(target="lane")
    store.add(target="lane")  # the follower in the lane must not move either
    attempt = WAYS_TO_BE_STALE[way](store, store.claim_one("w1"))
    before = store.everything()
    assert VERBS[verb](store, attempt) == (attempt.job_id,)
    assert store.everything() == before


@pytest.mark.requirement("S0.3", "S0.12")
@pytest.mark.parametrize("kind", OutcomeKind)
def test_another_worker_cannot_finish_an_attempt(store: StoreUnderTest, kind: OutcomeKind) -> None:
    """The attempt is genuine; the caller is not its owner."""
    store.add()
    attempt = store.claim_one("w1")
    before = store.everything()
    finished = store.store.finish("intruder", [AttemptEnd(attempt, Outcome(kind=kind))])
    assert finished.lost == (attempt.job_id,)
    assert finished.decisions == {}
    assert store.everything() == before


@pytest.mark.requirement("S0.3", "S0.12")
def test_another_worker_cannot_release_an_attempt(store: StoreUnderTest) -> None:
    store.add()
    attempt = store.claim_one("w1")
    before = store.everything()
    assert store.store.give_back("intruder", [attempt]).lost == (attempt.job_id,)
    assert store.everything() == before


@pytest.mark.requirement("S0.12", "S3.4")
@pytest.mark.parametrize("kind", OutcomeKind)
def test_one_stale_lease_does_not_cost_its_neighbours_theirs(
    store: StoreUnderTest, kind: OutcomeKind
) -> None:
    store.add()
    store.add()
    first, second = store.claim()
    stale = msgspec.structs.replace(first, token=first.token + 1)
    ended = [AttemptEnd(each, Outcome(kind=kind)) for each in (stale, second)]
    finished = store.store.finish("w1", ended)
    assert finished.lost == (first.job_id,)
    assert set(finished.decisions) == {second.job_id}
    assert store.state(first.job_id) == "assigned"
    assert store.state(second.job_id) != "assigned"


@pytest.mark.requirement("S0.6", "S0.12")
def test_a_lease_that_never_was_is_lost_too(store: StoreUnderTest) -> None:
    ghost = LeaseKey(4711, 1)
    assert store.store.mark_running("w1", [ghost]) == (4711,)
    assert store.store.renew("w1", [ghost], LEASE_SECONDS).lost == (4711,)


@pytest.mark.requirement("S3.4")
def test_every_claim_has_a_larger_token_than_all_before(store: StoreUnderTest) -> None:
    tokens = []
    job_id = store.add()
    for owner in ("w1", "w2", "w1"):
        attempt = store.claim_one(owner)
        tokens.append(attempt.token)
        assert store.end(attempt, OutcomeKind.GIVE_BACK)
    assert tokens == sorted(set(tokens))
    last = store.claim_one()
    assert store.end(last, OutcomeKind.SUCCESS)
    store.store.operate(OperatorVerb.RETRY, [job_id], "ann", None)
    assert store.claim_one().token > last.token > tokens[-1]


@pytest.mark.requirement("S3.4", "S4.3")
def test_the_next_holder_of_a_lane_has_the_larger_token(store: StoreUnderTest) -> None:
    """So that an outside system can refuse the late write of an earlier holder."""
    store.add(target="lane")
    store.add(target="lane")
    first = store.claim_one("w1")
    assert store.end(first, OutcomeKind.SUCCESS)
    assert store.claim_one("w2").token > first.token
