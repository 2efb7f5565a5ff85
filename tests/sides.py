"""A store that speaks the oracle's ids and tokens, so that answers can be compared as they are.

Stores number as they like: PostgreSQL's sequences skip numbers, and one claim may draw
several tokens. What they promise is growth, which is checked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from freehold.model.history import Event
from freehold.model.job import Attempt, Enqueued, Job, NewJob, Request
from freehold.model.operator_actions import ActionResult, OperatorVerb
from freehold.store.rows import event_of
from freehold.store.types import AttemptEnd, ClaimRequest, Finished, LeaseKey, Recovered, Renewed
from tests.stores import StoreUnderTest

#: An id that no job will ever have, on any side.
NOBODY = 10**9
_EVENTS = """
select id, job_id, at, kind, state, attempt, by, reason, cast(error as text), token, leased_at,
    started_at, due_at from {s}event order by id
"""


class Side:
    def __init__(self, under_test: StoreUnderTest) -> None:
        self.under_test = under_test
        self._store = under_test.store
        self._theirs: dict[int, int] = {NOBODY: NOBODY}
        self._ours: dict[int, int] = {NOBODY: NOBODY}
        self._attempts: dict[LeaseKey, Attempt] = {}
        self._tokens: dict[int, int] = {}
        self._claims = 0

    # -- enqueue -----------------------------------------------------------------------------

    def enqueue(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        answers = self._store.enqueue(jobs)
        for answer in answers:
            if answer.created:
                self._meet(answer.id)
        return [Enqueued(self._ours[answer.id], answer.created) for answer in answers]

    def _meet(self, theirs: int) -> None:
        ours = len(self._ours)
        assert theirs > max((i for i in self._ours if i != NOBODY), default=0), "ids must grow"
        self._ours[theirs], self._theirs[ours] = ours, theirs

    def ours(self, theirs: int) -> int:
        return self._ours[theirs]

    # -- claim, start, renew -----------------------------------------------------------------

    def claim(self, ask: ClaimRequest) -> list[Attempt]:
        self._claims += 1
        before = max(self._tokens, default=0)
        answer = []
        for theirs in self._store.claim(ask):
            assert theirs.token > before, "tokens must grow from claim to claim"
            self._tokens[theirs.token] = self._claims
            ours = self._attempt(theirs)
            self._attempts[LeaseKey(ours.job_id, ours.token)] = theirs
            answer.append(ours)
        return answer

    def _attempt(self, theirs: Attempt) -> Attempt:
        return replace(theirs, job_id=self._ours[theirs.job_id], token=self._tokens[theirs.token])

    def start(self, owner: str, leases: Sequence[LeaseKey]) -> tuple[int, ...]:
        return self._all_ours(self._store.start(owner, self._keys(leases)))

    def renew(self, owner: str, leases: Sequence[LeaseKey], lease_seconds: float) -> Renewed:
        answer = self._store.renew(owner, self._keys(leases), lease_seconds)
        held = {self._ours[job_id]: request for job_id, request in answer.held.items()}
        return Renewed(held, self._all_ours(answer.lost))

    def requests(self, owner: str) -> dict[LeaseKey, Request]:
        asked = self._store.requests(owner)
        return {
            LeaseKey(self._ours[key.job_id], self._tokens[key.token]): request
            for key, request in asked.items()
        }

    def _keys(self, leases: Sequence[LeaseKey]) -> list[LeaseKey]:
        attempts = [self._attempts[key] for key in leases]
        return [LeaseKey(attempt.job_id, attempt.token) for attempt in attempts]

    def _all_ours(self, ids: Sequence[int]) -> tuple[int, ...]:
        return tuple(self._ours[job_id] for job_id in ids)

    # -- finish, release, recover ------------------------------------------------------------

    def finish(self, owner: str, ended: Sequence[AttemptEnd]) -> Finished:
        theirs = [replace(end, attempt=self._their_attempt(end.attempt)) for end in ended]
        return self._finished(self._store.finish(owner, theirs))

    def release(self, owner: str, attempts: Sequence[Attempt]) -> Finished:
        theirs = [self._their_attempt(attempt) for attempt in attempts]
        return self._finished(self._store.release(owner, theirs))

    def recover(self, limit: int, chance: float) -> list[Recovered]:
        recovered = self._store.recover(limit, chance)
        return [replace(each, attempt=self._attempt(each.attempt)) for each in recovered]

    def _their_attempt(self, ours: Attempt) -> Attempt:
        return self._attempts[LeaseKey(ours.job_id, ours.token)]

    def _finished(self, answer: Finished) -> Finished:
        decisions = {self._ours[job_id]: each for job_id, each in answer.decisions.items()}
        return Finished(decisions, self._all_ours(answer.lost))

    # -- what people do, and upkeep ----------------------------------------------------------

    def operate(
        self, verb: OperatorVerb, ids: Sequence[int], by: str, reason: str | None
    ) -> list[ActionResult]:
        answers = self._store.operate(verb, [self._theirs[i] for i in ids], by, reason)
        return [replace(answer, id=self._ours[answer.id]) for answer in answers]

    def delete(self, ids: Sequence[int]) -> list[int]:
        return [self._ours[job_id] for job_id in self._store.delete([self._theirs[i] for i in ids])]

    def pause_queue(self, name: str, until: datetime | None) -> None:
        self._store.pause_queue(name, "ops", "why not", until)

    def resume_queue(self, name: str) -> bool:
        return self._store.resume_queue(name)

    def make_ready(self, limit: int) -> int:
        return self._store.make_ready(limit)

    def next_due_seconds(self) -> float | None:
        return self._store.chores(()).due_seconds

    def unpark(self, tasks: Sequence[str], limit: int) -> int:
        return self._store.unpark(tasks, limit)

    def advance(self, by: float) -> None:
        self.under_test.advance(by)

    # -- everything that can be seen ---------------------------------------------------------

    def all_jobs(self) -> dict[int, Job]:
        found = self._store.read([i for i in self._ours if i != NOBODY])
        return {self._ours[job_id]: self._job(job) for job_id, job in found.items()}

    def _job(self, theirs: Job) -> Job:
        job = replace(theirs, id=self._ours[theirs.id])
        if job.lease is not None:
            job = replace(job, lease=replace(job.lease, token=self._tokens[job.lease.token]))
        if job.report is not None and job.report.token is not None:
            report = replace(job.report, token=self._tokens[job.report.token])
            job = replace(job, report=report)
        return job

    def all_events(self) -> dict[int, list[Event]]:
        """By one look behind the store's back: `events` reads one job at a time."""
        found: dict[int, list[Event]] = {}
        for row in self.under_test.sql(_EVENTS):
            event = event_of(row)
            job_id = self._ours[event.job_id]
            token = None if event.token is None else self._tokens[event.token]
            ours = replace(event, id=0, job_id=job_id, token=token)
            found.setdefault(job_id, []).append(ours)
        return found
