"""Checks every write as it happens: the invariants that can be checked after every group.

It reads the rows that a group has written and compares them with the rows before. It does not trust
the statements: whether the writer still owned the lease follows from the rows before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from freehold.clock import VirtualClock
from freehold.lab.checker.violation import Violation
from freehold.lab.simulation.adversarial_claims import (
    CLAIMS,
    ENQUEUES,
    ENQUEUES_WAITING,
    FIRE,
    MEMBERS,
)
from freehold.lab.simulation.limit_invariant import LimitInvariant, LiveLease
from freehold.model.job import Job
from freehold.model.state import FINAL, LEASED, TRANSITIONS, State
from freehold.model.timestamps import micros_of
from freehold.store.statements import Rows, Statement, StatementGroup
from freehold.store.store import Store

#: Statements of an owner, which are valid only while its lease holds.
_EXPIRE = "expire_leases"
#: Records what the next statement of its group changes, and changes no job itself.
_AUDIT = "audit_jobs"
_PUT_STEPS = "put_steps"
_OWNER_STATEMENTS = frozenset({"succeed", "succeed_in_flow", "renew", "mark_running", "append_log"})
_TRANSITIONS = frozenset({"transition", "transition_in_flow"})
_OPERATOR_STATEMENTS = frozenset({"requeue_finished", "mark_resolved", "restore_nodes"})


@dataclass(frozen=True, slots=True)
class RowSnapshot:
    """The checked fields of a job, as the last write left them."""

    state: State
    owner: str | None
    token: int
    expires: int
    attempt: int
    run_at: int
    queue: str
    limit_key: str | None


class InvariantChecker:
    """One per world."""

    def __init__(
        self,
        store: Store,
        clock: VirtualClock,
        trace: Callable[[str, str], None],
        limits: LimitInvariant,
        on_recovered: Callable[[str, int, int], None],
    ) -> None:
        """``on_recovered``: called with the machine, the job and the token."""
        self._store = store
        self._clock = clock
        #: Adds every change of a job to the trace.
        self._trace = trace
        self._limits = limits
        self._on_recovered = on_recovered
        self._last_token = 0
        self.jobs: dict[int, RowSnapshot] = {}
        #: When a job was last changed, in microseconds.
        self.changed_at = 0
        self.violations: list[Violation] = []
        self.transitions: Counter[tuple[State | None, State]] = Counter()

    def check_group(self, actor: str, group: StatementGroup, results: list[Rows]) -> None:
        if not group.writes:
            self._check_lanes(group, results)
            return
        touched: dict[int, list[tuple[Statement, dict[str, Any]]]] = {}
        for statement, rows in zip(group.statements, results, strict=True):
            if statement.name == _PUT_STEPS:
                self._check_steps(actor, rows)
            for job_id, row in (*_touched(statement, rows), *self._restored(statement)):
                touched.setdefault(job_id, []).append((statement, row))
        if not touched:
            return
        found = self._store.read(sorted(touched))
        last_token = self._last_token
        for job_id, job in sorted(found.items()):
            self._check_write(actor, job_id, _snapshot(job), touched[job_id])
            last_token = max(last_token, self.jobs[job_id].token)
        self._last_token = last_token
        if self._limits and any(statement.name in CLAIMS for statement in group.statements):
            self._check_limits(sorted(found))

    def _restored(self, statement: Statement) -> Iterator[tuple[int, dict[str, Any]]]:
        """A retry of a workflow changes any of its nodes."""
        if statement.name == "restore_nodes":
            nodes = self._store.flow_nodes(statement.params["flow"])
            yield from ((node.job_id, {}) for node in nodes if node.job_id is not None)

    def _check_write(
        self,
        actor: str,
        job_id: int,
        after: RowSnapshot,
        by: list[tuple[Statement, dict[str, Any]]],
    ) -> None:
        before = self.jobs.get(job_id)
        self.jobs[job_id] = after
        if before == after:
            return
        self.changed_at = self._clock.micros
        statement, row = by[0]
        if before is None or before.state is not after.state:
            self._check_transition(actor, job_id, before, after, statement.name)
        if before is None:
            return
        if before.state in LEASED:
            # Of several rows about one job, only its owner's may have changed it.
            if not any(_is_by_owner(before, *each) for each in by):
                self._check_fence(actor, job_id, before, statement, row)
            else:
                self._check_time(job_id, before, statement)
        elif statement.name in CLAIMS:
            self._check_claim(actor, job_id, before, after)
        elif before.state in FINAL and not _is_by_operator(statement, row):
            self._violate("I2", job_id, f"{actor} changed a finished job by {statement.name}")

    def _check_transition(
        self, actor: str, job_id: int, before: RowSnapshot | None, after: RowSnapshot, how: str
    ) -> None:
        source = before.state if before is not None else None
        self.transitions[source, after.state] += 1
        self._trace(actor, f"{how}: job {job_id} {source or 'new'} -> {after.state}")
        if source is not None and after.state not in TRANSITIONS[source]:
            self._violate("S0.1", job_id, f"{actor} changed it from {source} to {after.state}")

    def _check_fence(
        self,
        actor: str,
        job_id: int,
        before: RowSnapshot,
        statement: Statement,
        row: dict[str, Any],
    ) -> None:
        now = self._clock.micros
        if statement.name in CLAIMS:
            self._violate("S0.2", job_id, f"{actor} claimed it while {before.owner} held its lease")
        elif statement.name in _TRANSITIONS and row["expired"]:
            self._on_recovered(actor, job_id, before.token)
            if now < before.expires:
                left = (before.expires - now) / 1e6
                text = f"{actor} recovered a lease that was valid for another {left:g} s"
                self._violate("S0.7", job_id, text)
        elif statement.name == _EXPIRE:
            if statement.params["owner"] != before.owner:
                text = f"{actor} ended the lease of {before.owner} for another owner"
                self._violate("S0.7", job_id, text)
        elif statement.name in _OWNER_STATEMENTS | _TRANSITIONS:
            self._violate(
                "I2",
                job_id,
                f"{statement.name} of {actor}, token {row['token']}, was accepted while "
                f"{before.owner} held the lease with token {before.token}",
            )

    def _check_time(self, job_id: int, before: RowSnapshot, statement: Statement) -> None:
        late = (self._clock.micros - before.expires) / 1e6
        if late >= 0:
            self._violate(
                "P1",
                job_id,
                f"{statement.name} of {before.owner} was accepted {late:g} s after its lease ended",
            )

    def _check_steps(self, actor: str, rows: Rows) -> None:
        """Each row is a lease that held, according to the statement."""
        for job_id, token, *_ in rows:
            lease = self.jobs[job_id]
            if lease.state not in LEASED or lease.token != token:
                self._violate("I2", job_id, f"a step of {actor}, token {token}, was accepted")
            elif self._clock.micros >= lease.expires:
                self._violate("P1", job_id, f"a step of {actor} was accepted after its lease ended")

    def _check_claim(
        self, actor: str, job_id: int, before: RowSnapshot, after: RowSnapshot
    ) -> None:
        if after.state not in LEASED:
            return  # parked: its task is unknown
        if after.token <= self._last_token:
            self._violate("S3.4", job_id, f"its token {after.token} was not new")
        if after.attempt != before.attempt + 1:
            self._violate("S1.2", job_id, f"{actor} claimed it without counting an attempt")
        if after.run_at > self._clock.micros:
            self._violate("S1.1", job_id, f"{actor} claimed it before it was due")

    def is_limited(self, job_id: int) -> bool:
        """Whether a limit that is used up keeps the job waiting."""
        job = self.jobs[job_id]
        return self._limits.is_full_for(LiveLease(job.queue, job.limit_key), self._live_leases())

    def _live_leases(self) -> list[LiveLease]:
        now = self._clock.micros
        return [
            LiveLease(each.queue, each.limit_key)
            for each in self.jobs.values()
            if each.state in LEASED and each.expires > now
        ]

    def _check_limits(self, claimed: list[int]) -> None:
        live = self._live_leases()
        for job_id in claimed:
            new = self.jobs[job_id]
            if new.state in LEASED:
                for text in self._limits.broken_by(LiveLease(new.queue, new.limit_key), live):
                    self._violate("S0.10", job_id, text)

    def _check_lanes(self, group: StatementGroup, results: list[Rows]) -> None:
        """The lane sweep is a safety net that would hide bugs in promotion. Here an ending and the
        promotion run in one transaction, so the sweep must never find a stalled lane."""
        for statement, rows in zip(group.statements, results, strict=True):
            if statement.name == "stalled_lanes":
                for target in (target for target, queue, *_ in rows if queue is not None):
                    self._violate("S4.3", 0, f"lane {target} has waiting jobs but no holder")

    def _violate(self, rule: str, job_id: int, text: str) -> None:
        self.violations.append(Violation(rule, job_id, text, self._clock.micros))


def _touched(statement: Statement, rows: Rows) -> Iterator[tuple[int, dict[str, Any]]]:
    if statement.name == _AUDIT:
        return
    if statement.name in CLAIMS or statement.name == _EXPIRE:
        yield from ((row[0], {}) for row in rows if row[0] is not None)
    elif statement.name in MEMBERS:
        yield from ((row[0], {}) for row in rows)
    elif statement.name == "add_nodes":
        yield from ((job_id, {}) for _number, job_id in rows if job_id is not None)
    elif statement.name == "gather":
        yield from ((job_id, {}) for value, kind in rows for job_id in _children(value, kind))
    elif statement.name == FIRE:
        yield from ((job_id, {}) for _name, job_id in rows if job_id is not None)
    elif statement.name in ENQUEUES | ENQUEUES_WAITING:
        # Rows of jobs with keys begin with the job's index in the group, all others with the id.
        at = int(statement.name in ENQUEUES_WAITING | {"enqueue_keyed"})
        yield from ((row[at], {}) for row in rows)
    elif "id" in statement.params:
        yield statement.params["id"], dict(statement.params)
    else:
        yield from ((row["id"], dict(row)) for row in statement.rows or () if "id" in row)


def _children(value: str, kind: str) -> list[int]:
    found: list[int] = msgspec.json.decode(value)["jobs"] if kind == "gather" else []
    return found


def _is_by_owner(before: RowSnapshot, statement: Statement, row: dict[str, Any]) -> bool:
    if statement.name not in _OWNER_STATEMENTS and (
        statement.name not in _TRANSITIONS or row["expired"]
    ):
        return False
    owner = row["owner"] if "owner" in row else statement.params["owner"]
    return (owner, row["token"]) == (before.owner, before.token)


def _is_by_operator(statement: Statement, row: dict[str, Any]) -> bool:
    return statement.name in _OPERATOR_STATEMENTS or (
        statement.name in _TRANSITIONS and row["seen_stage"] == "x"
    )


def _snapshot(job: Job) -> RowSnapshot:
    lease = job.lease
    return RowSnapshot(
        job.state,
        None if lease is None else lease.owner,
        0 if lease is None else lease.token,
        0 if lease is None else micros_of(lease.expires_at),
        job.attempt,
        micros_of(job.run_at),
        job.queue,
        job.limit_key,
    )
