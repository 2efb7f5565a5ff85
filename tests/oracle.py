"""The queue as a dictionary of jobs: what every verb of both stores must return.

Nothing here is fast, concurrent or durable, so that it can be read as the definition of the
contract. Only the pure rules (decide, plan, stage_after) come from the product.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from freehold.errors import IllegalTransition, JobNotFound, UniqueKeyTaken
from freehold.model.bulk import Amend, Amendment, BulkVerb, Delete, plan_amend, plan_bulk
from freehold.model.history import Event, EventKind
from freehold.model.job import Attempt, Enqueued, Job, Lease, NewJob, StopRequest
from freehold.model.meta import decode_meta
from freehold.model.operator_actions import (
    ActionResult,
    ActionStatus,
    NoChange,
    OperatorVerb,
    RequestStop,
    Transition,
    plan,
)
from freehold.model.outcome import (
    NEVER_STARTED,
    Decision,
    Outcome,
    OutcomeKind,
    decide,
    stage_after,
)
from freehold.model.policy import pack
from freehold.model.schedule import ScheduleDefinition, Tick, packed_policy
from freehold.model.schedule_changes import Schedule
from freehold.model.state import FINAL, Stage, State, state_of
from freehold.store.types import (
    AttemptEnd,
    AwaitedSignal,
    ClaimRequest,
    Finished,
    Firing,
    LeaseKey,
    QueueDemand,
    Recovered,
    Renewed,
)
from tests.oracle_maintenance import Maintenance
from tests.oracle_schedules import OneSchedule
from tests.oracle_signals import Signals, StoredStep
from tests.oracle_table import READY, Change, attempt_of, seconds
from tests.oracle_waiting import WaitingKeys

#: The step by which the store spreads one random number over a batch.
GOLDEN = 0.618033988749895


class Oracle(Maintenance):
    def __init__(self, now: datetime) -> None:
        super().__init__(now)
        self._keys: dict[str, tuple[int, datetime]] = {}
        self._pauses: dict[str, datetime | None] = {}
        self._waiting = WaitingKeys(self)
        self._last_id = 0
        self._bulks = 0
        self._last_token = 0
        self.signals = Signals(self)
        self.schedule = OneSchedule(self, self._insert_tick)

    # -- enqueue -----------------------------------------------------------------------------

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        results: list[Enqueued] = []
        ids_by_key: dict[str, int] = {}
        for new in jobs:
            if new.waiting is not None:
                results.append(self._enqueue_waiting(new))
                continue
            key = new.idempotency_key
            holder = ids_by_key[key] if key in ids_by_key else self._holder(new)
            result = self._enqueued(self._insert(new) if holder is None else holder, holder is None)
            results.append(result)
            if key is not None:
                self._remember_key(key, result.id, new.idempotency_seconds)
                ids_by_key[key] = result.id
        return results

    def _enqueue_waiting(self, new: NewJob) -> Enqueued:
        assert new.waiting is not None
        holder = self._waiting.holder(new.waiting.key)
        if holder is None:
            return self._enqueued(self._insert(self._waiting.timed(new)), True)
        return self._enqueued(holder.id, False, self._waiting.replace(holder, new))

    def _enqueued(self, job_id: int, created: bool, replaced: bool = False) -> Enqueued:
        live = [job.created_at for job in self.live() if job.id == job_id]
        return Enqueued(job_id, created, replaced, live[0] if live else None)

    def _holder(self, new: NewJob) -> int | None:
        if new.idempotency_key is not None and self._is_key_known(new.idempotency_key):
            return self._keys[new.idempotency_key][0]
        return self._unique_holder(new.unique_key)

    def _unique_holder(self, key: str | None) -> int | None:
        """Finished jobs, and failed jobs that block their lane, hold no key."""
        for job in self.live():
            if key is not None and job.unique_key == key and job.stage is not Stage.FAILED:
                return job.id
        return None

    def _is_key_known(self, key: str) -> bool:
        if key not in self._keys:
            return False
        job_id, expires_at = self._keys[key]
        return expires_at > self.now or any(job.id == job_id for job in self.live())

    def _remember_key(self, key: str, job_id: int, key_seconds: float) -> None:
        if not self._is_key_known(key):
            self._keys[key] = (job_id, self.now + seconds(key_seconds))

    def _insert(self, new: NewJob) -> int:
        self._last_id += 1
        due = new.run_at
        if due is None and new.delay_seconds is not None:
            due = self.now + seconds(new.delay_seconds)
        stage = Stage.READY
        if due is not None and due > self.now:
            stage = Stage.SCHEDULED
        if new.pending:
            stage = Stage.PENDING
        packed = pack(new.policy)
        self.due[self._last_id] = due
        self.events[self._last_id] = []
        self.jobs[self._last_id] = Job(
            id=self._last_id,
            task=new.task,
            queue=new.queue,
            state=state_of(stage, False),
            stage=stage,
            priority=new.priority,
            args=new.args.decode(),
            attempt=0,
            max_attempts=new.max_attempts,
            lost_attempts=0,
            target=new.target,
            limit_key=new.limit_key,
            unique_key=new.unique_key,
            tags=new.tags,
            timeout_seconds=new.timeout_seconds,
            policy_json=msgspec.json.encode(packed).decode() if packed else None,
            created_at=self.now,
            run_at=due or self.now,
            stop_request=None,
            stop_requested_by=None,
            stop_request_reason=None,
            reason=None,
            lease=None,
            report=None,
            meta=decode_meta(new.meta_json),
            waiting_key=None if new.waiting is None else new.waiting.key,
            start_by=self._start_by(new, due),
        )
        return self._last_id

    def _start_by(self, new: NewJob, due: datetime | None) -> datetime | None:
        if new.start_by is None or isinstance(new.start_by, datetime):
            return new.start_by
        return max(due or self.now, self.now) + seconds(new.start_by)

    # -- schedules ---------------------------------------------------------------------------

    def put_schedule(self, definition: ScheduleDefinition) -> None:
        self.schedule.put(definition)

    def pause_or_resume_schedule(self, until: datetime | None) -> None:
        self.schedule.pause_or_resume(until)

    def fire_schedules(self) -> Firing:
        return self.schedule.fire()

    def the_schedule(self) -> Schedule | None:
        return self.schedule.stored

    def _insert_tick(self, new: NewJob, tick: Tick) -> tuple[int, bool]:
        holder = self._unique_holder(new.unique_key)
        if holder is not None:
            return holder, False
        job_id = self._insert(new)
        policy = msgspec.json.encode(packed_policy(new.policy, tick)).decode()
        self.jobs[job_id] = replace(self.jobs[job_id], policy_json=policy)
        return job_id, True

    # -- claim, mark_running, renew ----------------------------------------------------------

    def claim(self, request: ClaimRequest) -> list[Attempt]:
        self._last_token += 1
        return [
            attempt for demand in request.demands for attempt in self._claim_queue(request, demand)
        ]

    def _claim_queue(self, request: ClaimRequest, demand: QueueDemand) -> list[Attempt]:
        """In order, up to the demand. Jobs that are not first in their lane are skipped."""
        claimed: list[Attempt] = []
        for job in self._ready(demand.queue):
            if len(claimed) == demand.count or not self.leads_its_lane(job):
                continue
            if request.tasks is not None and job.task not in request.tasks:
                why = "the claiming worker does not know this task"
                self.set_stage(job, Stage.PARKED, reason=why)
                self.add_event(job, EventKind.PARKED, State.QUEUED, request.owner, why)
            else:
                claimed.append(self._lease(job, request))
        return claimed

    def _ready(self, queue: str) -> list[Job]:
        if self._is_paused(queue):
            return []
        ready = [job for job in self.live() if job.queue == queue and job.stage in READY]
        ready = [job for job in ready if not self.is_late(job)]
        return sorted(ready, key=lambda job: (-job.priority, job.id))

    def leads_its_lane(self, job: Job) -> bool:
        if job.target is None or job.stage is Stage.LANE_HEAD:
            return True
        return self.next_in(job.target) == job

    def _lease(self, job: Job, request: ClaimRequest) -> Attempt:
        ends = self.now + seconds(request.lease_seconds)
        lease = Lease(request.owner, self._last_token, ends, self.now, self.now, None)
        leased_job = self.set_stage(
            job, Stage.LEASED, reason=None, attempt=job.attempt + 1, lease=lease
        )
        parked_until = self.parked_until.get(job.id)
        return attempt_of(leased_job, parked_until is not None and parked_until <= self.now)

    def mark_running(self, owner: str, leases: Sequence[LeaseKey]) -> tuple[int, ...]:
        for key in leases:
            if (lease := self._valid_lease(owner, key)) and lease.started_at is None:
                started = replace(lease, started_at=max(lease.leased_at, self.now))
                self.set_stage(self.jobs[key.job_id], Stage.LEASED, lease=started)
        return self._lost(owner, leases)

    def renew(self, owner: str, leases: Sequence[LeaseKey], lease_seconds: float) -> Renewed:
        lost = self._lost(owner, leases)
        for key in leases:
            if lease := self._valid_lease(owner, key):
                ends = self.now + seconds(lease_seconds)
                renewed = replace(lease, expires_at=ends, heartbeat_at=self.now)
                self.set_stage(self.jobs[key.job_id], Stage.LEASED, lease=renewed)
        held = {
            key.job_id: self.jobs[key.job_id].stop_request
            for key in leases
            if key.job_id not in lost
        }
        return Renewed(held, lost)

    def put_steps(self, owner: str, leases: Sequence[LeaseKey], name: str) -> tuple[int, ...]:
        for key in leases:
            if self._valid_lease(owner, key):
                self.signals.put_step(key, name)
        return self._lost(owner, leases)

    def all_steps(self) -> dict[int, dict[str, StoredStep]]:
        return self.signals.steps

    def await_signal(
        self, owner: str, lease: LeaseKey, name: str, wait_seconds: float
    ) -> AwaitedSignal | None:
        if self._valid_lease(owner, lease) is None:
            return None
        return self.signals.wait(lease, name, wait_seconds)

    def send_signal(self, name: str, value: bytes, keep_seconds: float) -> bool:
        return self.signals.send(name, value, keep_seconds)

    def deliver_signals(self) -> int:
        return self.signals.deliver()

    def stop_requests(self, owner: str) -> dict[LeaseKey, StopRequest]:
        return {
            LeaseKey(job.id, job.lease.token): job.stop_request
            for job in self.live()
            if job.lease and job.lease.owner == owner and job.stop_request
        }

    def _valid_lease(self, owner: str, key: LeaseKey) -> Lease | None:
        """The lease, if owner and token match and it has not expired."""
        job = self.jobs.get(key.job_id)
        lease = job.lease if job else None
        if lease and lease.owner == owner and lease.token == key.token:
            return lease if lease.expires_at > self.now else None
        return None

    def _lost(self, owner: str, leases: Sequence[LeaseKey]) -> tuple[int, ...]:
        return tuple(key.job_id for key in leases if self._valid_lease(owner, key) is None)

    # -- finish, give back, recover ------------------------------------------------------------

    def finish(self, owner: str, ended: Sequence[AttemptEnd]) -> Finished:
        decisions: dict[int, Decision] = {}
        for end in ended:
            if self._valid_lease(owner, LeaseKey(end.attempt.job_id, end.attempt.token)):
                decisions[end.attempt.job_id] = self._end(end, owner)
        lost = tuple(e.attempt.job_id for e in ended if e.attempt.job_id not in decisions)
        self.promote(end.attempt.target for end in ended)
        return Finished(decisions, lost)

    def give_back(self, owner: str, attempts: Sequence[Attempt]) -> Finished:
        reason = "returned to the queue before it started"
        outcome = Outcome(kind=OutcomeKind.GIVE_BACK, reason=reason)
        return self.finish(owner, [AttemptEnd(attempt, outcome) for attempt in attempts])

    def recover(self, limit: int, chance: float) -> list[Recovered]:
        expired = [j for j in self.live() if j.lease and j.lease.expires_at <= self.now]
        expired.sort(key=lambda j: (j.queue, j.lease.expires_at if j.lease else None, j.id))
        lost = Outcome(kind=OutcomeKind.LOST_LEASE)
        recovered = []
        for index, job in enumerate(expired[:limit]):
            spread = (chance + index * GOLDEN) % 1.0
            end = AttemptEnd(attempt_of(job), lost, job.stop_request, spread)
            recovered.append(Recovered(end.attempt, self._end(end, end.attempt.owner)))
        self.promote(job.target for job in expired[:limit])
        return recovered

    def _end(self, end: AttemptEnd, by: str) -> Decision:
        """A stop request on the job counts even if its worker had not read it."""
        job = self.jobs[end.attempt.job_id]
        decision = decide(end.attempt, end.outcome, job.stop_request, end.chance)
        delay = decision.delay_seconds
        run_at = self.now + seconds(delay) if delay else None
        if self.signals.is_there_for(decision.waits_for):
            run_at = None
        if decision.parks and run_at is not None:
            self.parked_until.setdefault(job.id, run_at)
            run_at = self.due[job.id]
        if decision.obeys:
            reason = self._obeyed_reason(job, decision)
            decision = replace(decision, requested_by=job.stop_requested_by, reason=reason)
        change = Change(
            state=decision.state,
            event=decision.event,
            by=by,
            reason=decision.reason,
            stages=stage_after(decision, end.attempt),
            run_at=run_at,
            error=decision.error,
            result=msgspec.json.decode(end.outcome.result) if end.outcome.result else None,
            refund=int(decision.refund),
            lost_attempts=int(decision.lost),
            keeps_run_at=decision.parks,
            waits_for=decision.waits_for,
            keeps_start_by=end.outcome.kind in NEVER_STARTED,
        )
        self.change(job, change)
        return decision

    def _obeyed_reason(self, job: Job, decision: Decision) -> str | None:
        if decision.state is not State.PAUSED or job.stop_request is not StopRequest.CANCEL:
            return job.stop_request_reason or decision.reason
        why = f": {job.stop_request_reason}" if job.stop_request_reason else ""
        return f"Job was interrupted by user: canceled by {job.stop_requested_by}{why}"

    # -- operators ---------------------------------------------------------------------------

    def operate(
        self, verb: OperatorVerb, ids: Sequence[int], by: str, reason: str | None
    ) -> list[ActionResult]:
        plans = [(job_id, plan(verb, self._existing(job_id))) for job_id in ids]
        return [self._perform(self.jobs[id_], step, by, reason) for id_, step in plans]

    def bulk(
        self, verb: BulkVerb, states: frozenset[State], changes: Amendment | None
    ) -> tuple[int, ...]:
        """One verb on all jobs in these states, oldest first. How many were changed, requested,
        so already, left alone, and refused."""
        self._bulks += 1
        counts = Counter[ActionStatus | None]()
        for job_id in [job.id for job in self.jobs.values() if job.state in states]:
            try:
                status = self._perform_bulk(verb, self.jobs[job_id], changes)
            except (IllegalTransition, UniqueKeyTaken):
                status = None
            counts[status] += 1
        return (*(counts[status] for status in ActionStatus), 0, counts[None])

    def amend(self, ids: Sequence[int], changes: Amendment) -> list[ActionResult]:
        for job_id in ids:
            plan_amend(self._existing(job_id), changes)
        for job_id in ids:
            self._amend(self.jobs[job_id], changes, "ops")
        return [ActionResult(id_, ActionStatus.DONE, self.jobs[id_].state) for id_ in ids]

    def _amend(self, job: Job, changes: Amendment, by: str) -> None:
        priority = job.priority if changes.priority is None else changes.priority
        self.jobs[job.id] = replace(
            job,
            priority=priority,
            queue=changes.queue or job.queue,
            max_attempts=changes.max_attempts or job.max_attempts,
        )
        self.add_event(job, EventKind.AMENDED, job.state, by, None)
        self.promote([job.target])

    def _perform_bulk(self, verb: BulkVerb, job: Job, changes: Amendment | None) -> ActionStatus:
        by = f"ops (bulk {self._bulks})"
        match plan_bulk(verb, job, changes):
            case Delete():
                self.delete([job.id])
            case Amend():
                assert changes is not None
                self._amend(job, changes, by)
            case step:
                return self._perform(job, step, by, None).status
        return ActionStatus.DONE

    def _existing(self, job_id: int) -> Job:
        if job_id not in self.jobs:
            raise JobNotFound(f"there is no job {job_id}")
        return self.jobs[job_id]

    def _perform(
        self, job: Job, step: Transition | RequestStop | NoChange, by: str, reason: str | None
    ) -> ActionResult:
        match step:
            case NoChange():
                return ActionResult(job.id, ActionStatus.ALREADY, step.state)
            case RequestStop():
                self._request_stop(job, step, by, reason)
                return ActionResult(job.id, ActionStatus.REQUESTED, job.state)
            case Transition():
                self._apply_transition(job, step, by, reason)
                return ActionResult(job.id, ActionStatus.DONE, step.state)

    def _request_stop(self, job: Job, request: RequestStop, by: str, reason: str | None) -> None:
        is_stronger = (
            job.stop_request is StopRequest.PAUSE and request.request is StopRequest.CANCEL
        )
        if job.stop_request is None or is_stronger:
            self.set_stage(
                job,
                Stage.LEASED,
                stop_request=request.request,
                stop_requested_by=by,
                stop_request_reason=reason,
            )
            self.add_event(job, request.event, job.state, by, reason)

    def _apply_transition(
        self, job: Job, transition: Transition, by: str, reason: str | None
    ) -> None:
        holder = self._unique_holder(job.unique_key)
        if transition.state not in FINAL and holder not in (None, job.id):
            assert holder is not None
            raise UniqueKeyTaken(f"job {holder} has the key", holder)
        run_at = self.due[job.id] if transition.keep_run_at else None
        change = Change(
            state=transition.state,
            event=transition.event,
            stages=transition.stages,
            by=by,
            reason=reason,
            run_at=run_at,
            fresh=transition.fresh_attempts,
            keeps_run_at=transition.keep_run_at,
        )
        if job.stage is not None:
            self.change(job, change)
        elif transition.stages is None:
            self._mark_resolved(job, by, reason)
        else:
            self._requeue_finished(job, change)
        self.promote([job.target])

    def _mark_resolved(self, job: Job, by: str, reason: str | None) -> None:
        """A finished failure keeps its report and changes its state to canceled."""
        assert job.report is not None
        report = replace(job.report, state=State.CANCELED)
        self.jobs[job.id] = replace(
            job, state=State.CANCELED, report=report, reason=reason or job.reason
        )
        self.add_event(job, EventKind.CANCELED, State.CANCELED, by, reason)

    def _requeue_finished(self, job: Job, change: Change) -> None:
        if job.state is State.SUCCEEDED:
            self._add_success_event(job)
        live_job = replace(job, report=None)
        if change.fresh:
            live_job = replace(live_job, attempt=0, lost_attempts=0)
        self.requeue(live_job, Stage.READY, change)
        self.add_event(live_job, change.event, change.state, change.by, change.reason)

    def _add_success_event(self, job: Job) -> None:
        """The success was stored only in the row, which is removed now."""
        done = job.report
        assert done is not None
        self.append_event(
            Event(
                0,
                job.id,
                done.finished_at,
                EventKind.SUCCEEDED,
                State.SUCCEEDED,
                job.attempt,
                done.finished_by,
                None,
                None,
                done.token,
                done.leased_at,
                done.started_at,
                None,
            )
        )

    def delete(self, ids: Sequence[int]) -> list[int]:
        found = [self.jobs[job_id] for job_id in set(ids) if job_id in self.jobs]
        gone = [job for job in found if job.stage is not Stage.LEASED]
        for job in gone:
            del self.jobs[job.id], self.events[job.id]
            self.signals.steps.pop(job.id, None)
        self.promote(job.target for job in found)
        return sorted(job.id for job in gone)

    def pause_queue(self, name: str, until: datetime | None) -> None:
        self._pauses[name] = until

    def resume_queue(self, name: str) -> bool:
        was_paused = self._is_paused(name)
        self._pauses.pop(name, None)
        return was_paused

    def _is_paused(self, name: str) -> bool:
        if name not in self._pauses:
            return False
        until = self._pauses[name]
        return until is None or until > self.now
