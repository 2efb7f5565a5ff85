"""A store that translates its ids and tokens to the oracle's, so that results can be compared.

Each store has its own numbers: PostgreSQL's sequences skip numbers, and one claim may use several
tokens. Stores only guarantee that numbers grow, which is checked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from freehold.model import schedule_changes
from freehold.model.audit import Author
from freehold.model.bulk import Amendment, BulkVerb
from freehold.model.history import Event
from freehold.model.job import Attempt, Enqueued, Job, NewJob, StopRequest
from freehold.model.operator_actions import ActionResult, OperatorVerb
from freehold.model.schedule import ScheduleDefinition
from freehold.model.schedule_changes import Schedule
from freehold.model.state import State
from freehold.model.step import StepKind
from freehold.model.timestamps import maybe_time, time_of
from freehold.store.rows import event_of
from freehold.store.types import (
    AttemptEnd,
    AwaitedSignal,
    ClaimRequest,
    Finished,
    Firing,
    JobFilter,
    LeaseKey,
    Misfit,
    NewStep,
    Recovered,
    Renewed,
    SetAside,
)
from tests.broken_rows import FORBIDDEN, LOST_TOO_OFTEN, mend, poison
from tests.oracle_maintenance import REFUSED
from tests.oracle_signals import StoredStep
from tests.stores import StoreUnderTest

#: An id that no job has, in the stores or in the oracle.
NO_JOB = 10**9
_EVENTS = """
select id, job_id, at, kind, state, attempt, by, reason, cast(error as text), token, leased_at,
    started_at, due_at from {s}event order by id
"""

_STEPS = "select job_id, name, token, at, kind, until, cast(value as text) from {s}step"
#: The one schedule of the oracle.
SCHEDULE = "tick"


class TranslatedStore:
    def __init__(self, under_test: StoreUnderTest) -> None:
        self.under_test = under_test
        self._store = under_test.store
        self._store_ids: dict[int, int] = {NO_JOB: NO_JOB}
        self._oracle_ids: dict[int, int] = {NO_JOB: NO_JOB}
        self._attempts: dict[LeaseKey, Attempt] = {}
        self._tokens: dict[int, int] = {}
        self._claims = 0
        self._refusals: set[str | None] = set()

    # -- enqueue -----------------------------------------------------------------------------

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        results = self._store.enqueue(jobs)
        for result in results:
            if result.created:
                self._learn_id(result.id)
        return [
            replace(result, id=self._oracle_ids[result.id], stored_time=result.created_at)
            for result in results
        ]

    def _newest(self) -> int:
        return max((i for i in self._oracle_ids if i != NO_JOB), default=0)

    def _learn_id(self, store_id: int) -> None:
        oracle_id = len(self._oracle_ids)
        assert store_id > self._newest(), "ids must grow"
        self._oracle_ids[store_id], self._store_ids[oracle_id] = oracle_id, store_id

    def oracle_id(self, store_id: int) -> int:
        return self._oracle_ids[store_id]

    # -- schedules ---------------------------------------------------------------------------

    def put_schedule(self, definition: ScheduleDefinition) -> None:
        self._store.put_schedule(definition, "ops")

    def pause_or_resume_schedule(self, until: datetime | None) -> None:
        def change(schedule: Schedule, now: datetime) -> Schedule:
            resumed = schedule_changes.resumed(schedule, now)
            return resumed or schedule_changes.paused(schedule, now, "ops", None, until)

        self._store.change_schedule(SCHEDULE, change)

    def fire_schedules(self) -> Firing:
        firing = self._store.fire_schedules(1000, 0.0)
        made = f"select id from {{s}}job where id > {self._newest()} order by id"
        for (store_id,) in self.under_test.sql(made):
            self._learn_id(store_id)
        return firing

    def the_schedule(self) -> Schedule | None:
        found = self._store.read_schedule(SCHEDULE)
        if found is None:
            return None
        return replace(
            found,
            last_job=self._oracle_ids.get(found.last_job or 0),
            skipped_for=self._oracle_ids.get(found.skipped_for or 0),
        )

    # -- claim, mark_running, renew ----------------------------------------------------------

    def claim(self, request: ClaimRequest) -> list[Attempt]:
        self._claims += 1
        before = max(self._tokens, default=0)
        translated = []
        for attempt in self._store.claim(request):
            assert attempt.token > before, "tokens must grow from claim to claim"
            self._tokens[attempt.token] = self._claims
            translated.append(self._translated(attempt))
            self._attempts[LeaseKey(translated[-1].job_id, translated[-1].token)] = attempt
        return translated

    def _translated(self, attempt: Attempt) -> Attempt:
        job_id, token = self._oracle_ids[attempt.job_id], self._tokens[attempt.token]
        return replace(attempt, job_id=job_id, token=token)

    def mark_running(self, owner: str, leases: Sequence[LeaseKey]) -> tuple[int, ...]:
        return self._all_oracle_ids(self._store.mark_running(owner, self._keys(leases)))

    def renew(self, owner: str, leases: Sequence[LeaseKey], lease_seconds: float) -> Renewed:
        result = self._store.renew(owner, self._keys(leases), lease_seconds)
        held = {self._oracle_ids[job_id]: request for job_id, request in result.held.items()}
        return Renewed(held, self._all_oracle_ids(result.lost))

    def put_steps(self, owner: str, leases: Sequence[LeaseKey], name: str) -> tuple[int, ...]:
        steps = [NewStep(key, name, 1, value=b"1") for key in self._keys(leases)]
        lost = self._store.put_steps(owner, steps)
        return self._all_oracle_ids([key.job_id for key in lost])

    def all_steps(self) -> dict[int, dict[str, StoredStep]]:
        found: dict[int, dict[str, StoredStep]] = {}
        for job_id, name, token, at, kind, until, value in self.under_test.sql(_STEPS):
            steps = found.setdefault(self._oracle_ids[job_id], {})
            times = time_of(at), StepKind(kind), maybe_time(until)
            steps[name] = StoredStep(self._tokens[token], *times, value)
        return found

    def await_signal(
        self, owner: str, lease: LeaseKey, name: str, wait_seconds: float
    ) -> AwaitedSignal | None:
        (key,) = self._keys([lease])
        found = self._store.await_signal(owner, key, name, 1, wait_seconds)
        return found and replace(found, left_seconds=round(found.left_seconds, 6))

    def send_signal(self, name: str, value: bytes, keep_seconds: float) -> bool:
        return self._store.send_signal(name, value, "ops", keep_seconds)

    def deliver_signals(self) -> int:
        return self._store.deliver_signals(1000)

    def stop_requests(self, owner: str) -> dict[LeaseKey, StopRequest]:
        requests = self._store.stop_requests(owner)
        return {
            LeaseKey(self._oracle_ids[key.job_id], self._tokens[key.token]): request
            for key, request in requests.items()
        }

    def _keys(self, leases: Sequence[LeaseKey]) -> list[LeaseKey]:
        attempts = [self._attempts[key] for key in leases]
        return [LeaseKey(attempt.job_id, attempt.token) for attempt in attempts]

    def _all_oracle_ids(self, ids: Sequence[int]) -> tuple[int, ...]:
        return tuple(self._oracle_ids[job_id] for job_id in ids)

    # -- finish, give back, recover ------------------------------------------------------------

    def finish(self, owner: str, ended: Sequence[AttemptEnd]) -> Finished:
        ends = [replace(end, attempt=self._store_attempt(end.attempt)) for end in ended]
        return self._finished(self._store.finish(owner, ends))

    def give_back(self, owner: str, attempts: Sequence[Attempt]) -> Finished:
        store_attempts = [self._store_attempt(attempt) for attempt in attempts]
        return self._finished(self._store.give_back(owner, store_attempts))

    def recover(self, limit: int, chance: float) -> list[Recovered]:
        recovered = self._store.recover(limit, chance)
        return [replace(each, attempt=self._translated(each.attempt)) for each in recovered]

    def cancel_late(self, limit: int) -> list[int]:
        return sorted(self.oracle_id(job.id) for job in self._store.cancel_late(limit))

    def expire_leases(self, owner: str) -> int:
        return self._store.expire_leases(owner)

    def restart_leases(self, limit: int) -> int:
        return self._store.restart_leases(limit)

    def _store_attempt(self, attempt: Attempt) -> Attempt:
        return self._attempts[LeaseKey(attempt.job_id, attempt.token)]

    def _finished(self, result: Finished) -> Finished:
        decisions = {self._oracle_ids[job_id]: each for job_id, each in result.decisions.items()}
        return Finished(decisions, self._all_oracle_ids(result.lost))

    # -- operators and maintenance -----------------------------------------------------------

    def operate(
        self, verb: OperatorVerb, ids: Sequence[int], by: str, reason: str | None
    ) -> list[ActionResult]:
        results = self._store.operate(verb, [self._store_ids[i] for i in ids], by, reason)
        return [replace(result, id=self._oracle_ids[result.id]) for result in results]

    def delete(self, ids: Sequence[int]) -> list[int]:
        deleted = self._store.delete([self._store_ids[i] for i in ids])
        return [self._oracle_ids[job_id] for job_id in deleted]

    def amend(self, ids: Sequence[int], changes: Amendment) -> list[ActionResult]:
        author = Author("ops", "test")
        results = self._store.amend([self._store_ids[i] for i in ids], changes, author)
        return [replace(result, id=self._oracle_ids[result.id]) for result in results]

    def bulk(
        self, verb: BulkVerb, states: frozenset[State], changes: Amendment | None
    ) -> tuple[int, ...]:
        author = Author("ops", "test")
        number = self._store.start_bulk(verb, JobFilter(states=states), changes, author)
        while self._store.carry_out_bulk_step():
            pass
        done = self._store.bulk_operation(number)
        assert done is not None
        refused = sum(done.refused.values())
        return (done.done, done.requested, done.already, done.changed, refused)

    def pause_queue(self, name: str, until: datetime | None) -> None:
        self._store.pause_queue(name, "ops", "why not", until)

    def resume_queue(self, name: str) -> bool:
        return self._store.resume_queue(name)

    def make_ready(self, limit: int) -> int:
        return self._store.make_ready(limit)

    def next_due_seconds(self) -> float | None:
        return self._store.sweep_check(()).due_seconds

    def unpark(self, tasks: Sequence[str], limit: int) -> int:
        return self._store.unpark(tasks, limit)

    def misfits(self, tasks: Sequence[str], after: int, limit: int) -> list[Misfit]:
        found = self._store.misfits(tasks, self._store_ids.get(after, 0), limit)
        return [replace(each, job_id=self._oracle_ids[each.job_id]) for each in found]

    def unpark_misfits(self, ids: Sequence[int]) -> int:
        return self._store.unpark_misfits([self._store_ids[job_id] for job_id in ids])

    def advance(self, by: float) -> None:
        self.under_test.advance(by)

    # -- rows that the database refuses ------------------------------------------------------

    def break_row(self, job_id: int, *, is_forbidden: bool) -> None:
        how = FORBIDDEN if is_forbidden else LOST_TOO_OFTEN
        poison(self.under_test, self._store_ids[job_id], how)

    def mend_row(self, job: Job) -> None:
        mend(self.under_test, self._store_ids[job.id], job.lost_attempts, job.max_attempts)

    def set_aside_ready(self, queue: str) -> list[int]:
        return self._aside(self._store.set_aside_ready(queue))

    def set_aside_swept(self) -> list[int]:
        return self._aside(self._store.set_aside_swept())

    def _aside(self, found: Sequence[SetAside]) -> list[int]:
        self._refusals |= {each.reason for each in found}
        return sorted(self._oracle_ids[each.job_id] for each in found)

    # -- everything that is stored -----------------------------------------------------------

    def all_jobs(self) -> dict[int, Job]:
        found = self._store.read([i for i in self._oracle_ids if i != NO_JOB])
        return {self._oracle_ids[job_id]: self._job(job) for job_id, job in found.items()}

    def _job(self, job: Job) -> Job:
        job = replace(job, id=self._oracle_ids[job.id], reason=self._reason(job.reason))
        if job.lease is not None:
            job = replace(job, lease=replace(job.lease, token=self._tokens[job.lease.token]))
        if job.report is not None and job.report.token is not None:
            report = replace(job.report, token=self._tokens[job.report.token])
            job = replace(job, report=report)
        return job

    def all_events(self) -> dict[int, list[Event]]:
        """Reads the table itself, because `events` reads one job at a time."""
        found: dict[int, list[Event]] = {}
        for row in self.under_test.sql(_EVENTS):
            event = event_of(row)
            job_id = self._oracle_ids[event.job_id]
            token = None if event.token is None else self._tokens[event.token]
            reason = self._reason(event.reason)
            translated = replace(event, id=0, job_id=job_id, token=token, reason=reason)
            found.setdefault(job_id, []).append(translated)
        return found

    def _reason(self, reason: str | None) -> str | None:
        """Each store sets rows aside with an error of its own."""
        return REFUSED if reason in self._refusals else reason
