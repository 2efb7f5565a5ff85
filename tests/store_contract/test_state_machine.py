"""Random lives of many jobs: both stores and the oracle agree.

Three owners, two queues, two lanes, keys, delays, pauses and stale hands, in any order and
with time moving up to the very microsecond of an expiry. After every step all that can be
seen of every job is the same on all three sides.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from freehold.errors import IllegalTransition, Refused, UniqueKeyTaken
from freehold.model.bulk import Amendment, BulkVerb
from freehold.model.job import Attempt, Job, NewJob, StopRequest
from freehold.model.operator_actions import NoChange, OperatorVerb, plan
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.schedule import ScheduleDefinition
from freehold.model.state import FINAL, HOLDS_LANE, Stage, State
from freehold.model.step import StepKind
from freehold.model.suspension import signal
from freehold.store.types import AttemptEnd, ClaimRequest, LeaseKey, QueueDemand
from tests.job_strategies import (
    OWNERS,
    QUEUES,
    chances,
    known_tasks,
    leases,
    new_jobs,
    outcomes,
    owners,
    queues,
    reasons,
    requests_seen,
    schedules,
    signal_names,
    waiting_jobs,
)
from tests.oracle import Oracle
from tests.oracle_table import TIMED, with_followers
from tests.stores import PostgresUnderTest, SqliteUnderTest
from tests.translated_store import NO_JOB, TranslatedStore

EVERYTHING = 1000
CHARGED = (
    OutcomeKind.ERROR,
    OutcomeKind.TIMEOUT,
    OutcomeKind.LOST_LEASE,
    OutcomeKind.RETRY_LATER,
)

#: The states of a bulk operation; deleting all jobs would leave nothing to do.
bulk_states = st.frozensets(st.sampled_from(State), min_size=1, max_size=3)

#: One attempt is refused for a job that has made it.
amendments = st.sampled_from(
    [
        Amendment(priority=-2),
        Amendment(queue=QUEUES[0]),
        Amendment(max_attempts=1),
        Amendment(queue=QUEUES[1], priority=4, max_attempts=20),
    ]
)

Everyone = Oracle | TranslatedStore


class StoresAgree(RuleBasedStateMachine):
    postgres: ClassVar[PostgresUnderTest]

    def __init__(self) -> None:
        super().__init__()
        self.postgres.reset()
        self.sqlite = SqliteUnderTest()
        self.sides = [TranslatedStore(self.sqlite), TranslatedStore(self.postgres)]
        self.oracle = Oracle(self.sqlite.now())
        self.attempts: list[Attempt] = []
        self.charged: dict[int, int] = {}
        self.last = ""

    def teardown(self) -> None:
        self.sqlite.database.close()

    def all(self, verb: Callable[[Everyone], Any]) -> Any:
        """The answer of the oracle, which is also that of both stores."""
        self.last = ""
        expected = answer_of(verb, self.oracle)
        for side in self.sides:
            assert answer_of(verb, side) == expected, side.under_test.kind
        return expected

    # -- the way of a job --------------------------------------------------------------------

    @initialize(jobs=st.lists(new_jobs | waiting_jobs, min_size=3, max_size=6))
    def begin(self, jobs: list[NewJob]) -> None:
        self.enqueue(jobs)

    @precondition(lambda self: len(self.oracle.jobs) < 15)
    @rule(jobs=st.lists(new_jobs | waiting_jobs, min_size=1, max_size=3))
    def enqueue(self, jobs: list[NewJob]) -> None:
        self.all(lambda store: store.enqueue(jobs))

    @precondition(lambda self: self._in(Stage.READY, Stage.LANE_HEAD))
    @rule(owner=owners, count=st.integers(1, 4), lease_seconds=leases)
    def claim_anything(self, owner: str, count: int, lease_seconds: float) -> None:
        demands = tuple(QueueDemand(queue, count) for queue in QUEUES)
        self._claim(ClaimRequest(owner=owner, lease_seconds=lease_seconds, demands=demands))

    @precondition(lambda self: self._in(Stage.READY, Stage.LANE_HEAD))
    @rule(owner=owners, queue=queues, count=st.integers(1, 4), tasks=known_tasks)
    def claim(self, owner: str, queue: str, count: int, tasks: frozenset[str] | None) -> None:
        demands = (QueueDemand(queue, count),)
        self._claim(ClaimRequest(owner=owner, lease_seconds=10.0, demands=demands, tasks=tasks))

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), stale=st.booleans())
    def mark_running(self, data: st.DataObject, stale: bool) -> None:
        owner, keys = self._keys(data, stale)
        self.all(lambda store: store.mark_running(owner, keys))

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), stale=st.booleans(), lease_seconds=leases, later=st.booleans())
    def renew(self, data: st.DataObject, stale: bool, lease_seconds: float, later: bool) -> None:
        self.all(lambda store: store.advance(3.0 if later else 0.0))
        owner, keys = self._keys(data, stale)
        self.all(lambda store: store.renew(owner, keys, lease_seconds))

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), stale=st.booleans(), name=st.sampled_from(["charge", "ship"]))
    def put_steps(self, data: st.DataObject, stale: bool, name: str) -> None:
        owner, keys = self._keys(data, stale)
        self.all(lambda store: store.put_steps(owner, keys, name))

    @precondition(lambda self: self._in(Stage.READY, Stage.LANE_HEAD))
    @rule(
        owner=owners,
        queue=queues,
        name=signal_names,
        wait=st.sampled_from([8.0, 8.0, 0.0]),
        sends=st.sampled_from(["before", "after", "never"]),
    )
    def run_until_a_signal(
        self, owner: str, queue: str, name: str, wait: float, sends: str
    ) -> None:
        """The signal may come before or after the suspension."""
        known = len(self.attempts)
        self._claim(ClaimRequest(owner=owner, lease_seconds=30.0, demands=(QueueDemand(queue, 1),)))
        for attempt in self.attempts[known:]:
            key = LeaseKey(attempt.job_id, attempt.token)
            found = self._await_signal(owner, key, name, wait)
            if found.kind is StepKind.WAIT:
                outcome = Outcome(
                    kind=OutcomeKind.SUSPEND,
                    delay_seconds=found.left_seconds,
                    waits_for=signal(name),
                )
                if sends == "before":
                    self.send_signal(name, b"3", False)
                self._finish(owner, AttemptEnd(attempt, outcome))
                if sends == "after":
                    self.send_signal(name, b"4", True)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), name=signal_names)
    def await_signal_with_any_hand(self, data: st.DataObject, name: str) -> None:
        owner, keys = self._keys(data, stale=True)
        self._await_signal(owner, keys[0], name, 8.0)

    def _await_signal(self, owner: str, key: LeaseKey, name: str, wait: float) -> Any:
        return self.all(lambda store: store.await_signal(owner, key, name, wait))

    @rule(name=signal_names, value=st.sampled_from([b"1", b"2"]), delivers=st.booleans())
    def send_signal(self, name: str, value: bytes, delivers: bool) -> None:
        self.all(lambda store: store.send_signal(name, value, 15.0))
        if delivers:
            self.all(lambda store: store.deliver_signals())

    @precondition(lambda self: self._holding())
    @rule(data=st.data(), outcome=outcomes, request=requests_seen, chance=chances)
    def finish(
        self, data: st.DataObject, outcome: Outcome, request: StopRequest | None, chance: float
    ) -> None:
        attempt = data.draw(st.sampled_from(self._holding()), label="attempt")
        self._finish(attempt.owner, AttemptEnd(attempt, outcome, request, chance))

    @precondition(lambda self: self._in(Stage.READY, Stage.LANE_HEAD))
    @rule(owner=owners, queue=queues, outcome=outcomes)
    def run_one(self, owner: str, queue: str, outcome: Outcome) -> None:
        known = len(self.attempts)
        self._claim(ClaimRequest(owner=owner, lease_seconds=30.0, demands=(QueueDemand(queue, 1),)))
        for attempt in self.attempts[known:]:
            self._finish(owner, AttemptEnd(attempt, outcome))

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), outcome=outcomes, owner=owners)
    def finish_with_any_hand(self, data: st.DataObject, outcome: Outcome, owner: str) -> None:
        """Stale attempts, expired leases, and those of other owners."""
        attempt = data.draw(st.sampled_from(self.attempts), label="attempt")
        self._finish(owner, AttemptEnd(attempt, outcome))

    @precondition(lambda self: len(self._holding()) > 1)
    @rule(data=st.data(), first=outcomes, second=outcomes)
    def finish_two(self, data: st.DataObject, first: Outcome, second: Outcome) -> None:
        pairs = st.lists(
            st.sampled_from(self._holding()), min_size=2, max_size=2, unique_by=lambda a: a.job_id
        )
        one, other = data.draw(pairs, label="attempts")
        self._finish(one.owner, AttemptEnd(one, first), AttemptEnd(other, second))

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), stale=st.booleans())
    def give_back(self, data: st.DataObject, stale: bool) -> None:
        choices = self.attempts if stale else self._holding() or self.attempts
        attempt = data.draw(st.sampled_from(choices), label="attempt")
        self.all(lambda store: store.give_back(attempt.owner, [attempt]))

    # -- what people do ----------------------------------------------------------------------

    @precondition(lambda self: self.oracle.jobs)
    @rule(data=st.data(), reason=reasons)
    def operate(self, data: st.DataObject, reason: str | None) -> None:
        self._operate_on_one_of(data, [*self.oracle.jobs.values()], reason)

    @precondition(lambda self: self._stopped())
    @rule(data=st.data(), reason=reasons)
    def operate_on_what_stopped(self, data: st.DataObject, reason: str | None) -> None:
        self._operate_on_one_of(data, self._stopped(), reason)

    @precondition(lambda self: self.oracle.jobs)
    @rule(data=st.data(), verb=st.sampled_from(OperatorVerb))
    def operate_on_two(self, data: st.DataObject, verb: OperatorVerb) -> None:
        """Whatever is wanted of whom: all of it is possible, or nothing is done."""
        job_ids = st.sampled_from([*self.oracle.jobs, NO_JOB])
        ids = data.draw(st.lists(job_ids, min_size=2, max_size=2, unique=True), label="ids")
        self._operate(verb, ids, "because")

    @precondition(lambda self: self.oracle.jobs)
    @rule(data=st.data(), changes=amendments)
    def amend(self, data: st.DataObject, changes: Amendment) -> None:
        """All of them can be amended, or none is."""
        job_ids = st.sampled_from([*self.oracle.jobs, NO_JOB])
        ids = data.draw(st.lists(job_ids, min_size=1, max_size=2, unique=True), label="ids")
        self.all(lambda store: store.amend(ids, changes))

    @precondition(lambda self: len(self.oracle.jobs) > 5)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        job_id = data.draw(st.sampled_from([*self.oracle.jobs]), label="id")
        self.all(lambda store: store.delete([job_id]))
        if job_id not in self.oracle.jobs:
            self.charged.pop(job_id, None)

    @precondition(lambda self: self.oracle.jobs)
    @rule(verb=st.sampled_from(BulkVerb), states=bulk_states)
    def change_all(self, verb: BulkVerb, states: frozenset[State]) -> None:
        """A bulk operation: as if the verb were applied to one job after the other."""
        before = {job.id: job.state for job in self.oracle.jobs.values()}
        changes = Amendment(priority=3) if verb is BulkVerb.AMEND else None
        self.all(lambda store: store.bulk(verb, states, changes))
        for job_id, state in before.items():
            job = self.oracle.jobs.get(job_id)
            if job is None:
                self.charged.pop(job_id, None)
            elif verb in (BulkVerb.RESUME, BulkVerb.RETRY) and job.state is not state:
                self.charged[job_id] = 0

    @precondition(lambda self: self.last != "pause")
    @rule(name=queues, resumes=st.booleans(), for_seconds=st.sampled_from([None, 10.0]))
    def pause_or_resume_queue(self, name: str, resumes: bool, for_seconds: float | None) -> None:
        until = self.oracle.now + timedelta(seconds=for_seconds) if for_seconds else None
        if resumes:
            self.all(lambda store: store.resume_queue(name))
        else:
            self.all(lambda store: store.pause_queue(name, until))
        self.last = "pause"

    @precondition(lambda self: self.last != "schedule")
    @rule(definition=schedules)
    def put_schedule(self, definition: ScheduleDefinition) -> None:
        self.all(lambda store: store.put_schedule(definition))
        self.last = "schedule"

    @precondition(lambda self: self.oracle.the_schedule() and self.last != "schedule")
    @rule(for_seconds=st.sampled_from([None, 12.0]))
    def pause_or_resume_schedule(self, for_seconds: float | None) -> None:
        until = self.oracle.now + timedelta(seconds=for_seconds) if for_seconds else None
        self.all(lambda store: store.pause_or_resume_schedule(until))
        self.last = "schedule"

    # -- upkeep and time ---------------------------------------------------------------------

    @precondition(lambda self: self._next_tick() and len(self.oracle.jobs) < 15)
    @rule(early=st.booleans())
    def fire_schedules(self, early: bool) -> None:
        """The clock moves exactly to the next tick, or to just before it."""
        wait = (self._next_tick() - self.oracle.now).total_seconds() - (0.000001 if early else 0)
        self.all(lambda store: store.advance(max(0.0, wait)))
        self.all(lambda store: store.fire_schedules())

    @precondition(lambda self: self._in(Stage.LEASED))
    @rule(limit=st.sampled_from([1, 2, EVERYTHING]), chance=chances)
    def recover(self, limit: int, chance: float) -> None:
        for each in self.all(lambda store: store.recover(limit, chance)):
            self._charge(each.attempt)

    @precondition(lambda self: any(map(self.oracle.is_late, self.oracle.live())))
    @rule(limit=st.sampled_from([1, EVERYTHING]))
    def cancel_late(self, limit: int) -> None:
        self.all(lambda store: store.cancel_late(limit))

    @precondition(lambda self: self._in(Stage.LEASED))
    @rule(owner=owners)
    def expire_leases(self, owner: str) -> None:
        self.all(lambda store: store.expire_leases(owner))

    @precondition(lambda self: self._in(Stage.LEASED))
    @rule(back=st.sampled_from([2.0, 15.0]), limit=st.sampled_from([1, EVERYTHING]))
    def set_clock_back(self, back: float, limit: int) -> None:
        """Leases that now begin in the future start again."""
        self.all(lambda store: store.advance(-back))
        self.all(lambda store: store.restart_leases(limit))

    @precondition(lambda self: self._in_a_known_stage())
    @rule(data=st.data(), is_forbidden=st.sampled_from([False, False, True]))
    def set_aside(self, data: st.DataObject, is_forbidden: bool) -> None:
        """A row that the database refuses, until a person has mended it."""
        job = data.draw(st.sampled_from(self._in_a_known_stage()), label="job")
        self.all(lambda store: store.break_row(job.id, is_forbidden=is_forbidden))
        self.all(lambda store: (store.set_aside_ready(job.queue), store.set_aside_swept()))
        self.all(lambda store: store.mend_row(job))

    @precondition(lambda self: self._in(Stage.LEASED))
    @rule(data=st.data(), limit=st.sampled_from([2, EVERYTHING]), chance=chances)
    def lose_workers(self, data: st.DataObject, limit: int, chance: float) -> None:
        """The clock moves exactly to the end of a lease, and a sweep runs."""
        jobs = self.oracle.jobs.values()
        ends = sorted({job.lease.expires_at for job in jobs if job.lease})
        wait = data.draw(st.sampled_from(ends), label="until") - self.oracle.now
        self.all(lambda store: store.advance(max(0.0, wait.total_seconds())))
        self.recover(limit, chance)

    @precondition(lambda self: self._in(Stage.SCHEDULED, Stage.BACKOFF, Stage.PARKED))
    @rule(one=st.booleans(), tasks=st.sampled_from([(), ("u",), ("t", "u")]))
    def make_ready(self, one: bool, tasks: tuple[str, ...]) -> None:
        times = [job.run_at for job in self.oracle.jobs.values() if job.stage in TIMED]
        # Which of those that are due at the same instant comes first is not promised.
        limit = 1 if one and len(times) == len(set(times)) else EVERYTHING
        self.all(lambda store: store.make_ready(limit))
        self.all(lambda store: store.unpark(tasks, EVERYTHING))
        found = self.all(lambda store: store.misfits(tasks, 0, EVERYTHING))
        ids = [misfit.job_id for misfit in found[: 1 if one else EVERYTHING]]
        self.all(lambda store: store.unpark_misfits(ids))

    @precondition(lambda self: self.last != "advance")
    @rule(data=st.data())
    def advance(self, data: st.DataObject) -> None:
        """By a while, or to the next expiry or due time, or to just before it."""
        tick = timedelta(microseconds=1)
        waits = [when - self.oracle.now for when in self._coming()]
        choices = [*waits, *(w - tick for w in waits), timedelta(seconds=1), timedelta(seconds=21)]
        wait = data.draw(st.sampled_from(choices), label="wait").total_seconds()
        self.all(lambda store: store.advance(wait))
        self.last = "advance"

    # -- what always holds -------------------------------------------------------------------

    @invariant()
    def all_see_the_same(self) -> None:
        jobs = with_followers(self.oracle.jobs)
        recorded = {job_id: events for job_id, events in self.oracle.events.items() if events}
        for side in self.sides:
            assert with_followers(side.all_jobs()) == jobs, side.under_test.kind
            assert side.all_events() == recorded, side.under_test.kind
            assert side.all_steps() == self.oracle.all_steps(), side.under_test.kind
            assert side.next_due_seconds() == self.oracle.next_due_seconds()
            assert side.the_schedule() == self.oracle.the_schedule(), side.under_test.kind

    @invariant()
    def a_lane_has_one_holder(self) -> None:
        lanes = [
            job.target
            for job in self.oracle.jobs.values()
            if job.target and job.stage in HOLDS_LANE
        ]
        assert len(lanes) == len(set(lanes))

    @invariant()
    def no_job_fails_more_often_than_allowed(self) -> None:
        for job_id, times in self.charged.items():
            assert times <= self.oracle.jobs[job_id].max_attempts

    # -- helpers -----------------------------------------------------------------------------

    def _in(self, *stages: Stage) -> bool:
        return any(job.stage in stages for job in self.oracle.jobs.values())

    def _in_a_known_stage(self) -> list[Job]:
        """Not in the middle of a lane, where stores differ: see `with_followers`."""
        lane = (Stage.READY, Stage.FOLLOWER)
        live = self.oracle.live()
        return [job for job in live if job.stage not in lane or self.oracle.leads_its_lane(job)]

    def _stopped(self) -> list[Job]:
        return [job for job in self.oracle.jobs.values() if job.state in (State.PAUSED, *FINAL)]

    def _operate_on_one_of(self, data: st.DataObject, jobs: list[Job], reason: str | None) -> None:
        job = data.draw(st.sampled_from(jobs), label="job")
        verb = data.draw(st.sampled_from([verb for verb in OperatorVerb if has_effect(verb, job)]))
        self._operate(verb, [job.id], reason)

    def _operate(self, verb: OperatorVerb, ids: list[int], reason: str | None) -> None:
        for answer in self.all(lambda store: store.operate(verb, ids, "ops", reason)):
            if verb in (OperatorVerb.RESUME, OperatorVerb.RETRY) and answer.status == "done":
                self.charged[answer.id] = 0
        self.all(lambda store: [store.stop_requests(owner) for owner in OWNERS])

    def _claim(self, request: ClaimRequest) -> None:
        self.attempts += self.all(lambda store: store.claim(request))

    def _finish(self, owner: str, *ended: AttemptEnd) -> None:
        answer = self.all(lambda store: store.finish(owner, ended))
        for end in ended:
            if end.attempt.job_id in answer.decisions and end.outcome.kind in CHARGED:
                self._charge(end.attempt)

    def _charge(self, attempt: Attempt) -> None:
        self.charged[attempt.job_id] = self.charged.get(attempt.job_id, 0) + 1

    def _holding(self) -> list[Attempt]:
        """Attempts that still own their lease, expired or not."""
        tokens = {job.id: job.lease.token for job in self.oracle.jobs.values() if job.lease}
        return [each for each in self.attempts if tokens.get(each.job_id) == each.token]

    def _keys(self, data: st.DataObject, stale: bool) -> tuple[str, list[LeaseKey]]:
        choices = self.attempts if stale else self._holding() or self.attempts
        lists = st.lists(
            st.sampled_from(choices), min_size=1, max_size=3, unique_by=lambda a: a.job_id
        )
        attempts = data.draw(lists, label="attempts")
        keys = [LeaseKey(attempt.job_id, attempt.token) for attempt in attempts]
        return attempts[0].owner, keys

    def _next_tick(self) -> Any:
        schedule = self.oracle.the_schedule()
        return None if schedule is None else schedule.next_at

    def _coming(self) -> list[datetime]:
        live = [job for job in self.oracle.jobs.values() if job.stage is not None]
        times = [job.lease.expires_at if job.lease else job.run_at for job in live]
        times += [job.start_by for job in live if job.start_by and not job.attempt]
        times += [
            self.oracle.parked_until[job.id]
            for job in live
            if job.stage is Stage.PARKED and job.id in self.oracle.parked_until
        ]
        times += self.oracle.signals.times
        return sorted({when for when in times if when > self.oracle.now})[:2]


def answer_of(verb: Callable[[Everyone], Any], store: Everyone) -> Any:
    """Refusals are answers too; their words name ids, which are each store's own."""
    try:
        return verb(store)
    except UniqueKeyTaken as taken:
        holder = (
            store.oracle_id(taken.holder) if isinstance(store, TranslatedStore) else taken.holder
        )
        return [Refusal("UniqueKeyTaken", holder)]
    except Refused as refusal:
        return [Refusal(type(refusal).__name__)]


def has_effect(verb: OperatorVerb, job: Job) -> bool:
    try:
        return not isinstance(plan(verb, job), NoChange)
    except IllegalTransition:
        return False


class Refusal:
    status = "refused"

    def __init__(self, name: str, id_: int | None = None) -> None:
        self.name, self.id = name, id_

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Refusal) and (self.name, self.id) == (other.name, other.id)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{self.name}({self.id})"


@pytest.mark.requirement("S3.7", "S0.13", "S0.1", "P5", "P6", "P7", "P9", "N8")
def test_both_stores_do_exactly_what_the_oracle_says(
    postgres_under_test: PostgresUnderTest,
) -> None:
    class HereStoresAgree(StoresAgree):
        postgres = postgres_under_test

    # Each is a life of fifty steps on three sides: fewer of them than of smaller things.
    examples = settings().max_examples * 2 // 5
    run_state_machine_as_test(
        HereStoresAgree, settings=settings(max_examples=examples, stateful_step_count=50)
    )
