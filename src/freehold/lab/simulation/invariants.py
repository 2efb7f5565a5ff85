"""Looks at every write as it happens: the invariants that can be judged after every step.

It sees what a batch has left in the store, and remembers what was there before. It does not
trust the statements: whether the writer still owned the job is judged from what was seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from freehold.clock import VirtualClock
from freehold.lab.checker.violation import Violation
from freehold.lab.simulation.adversarial_claims import CLAIMS
from freehold.lab.simulation.limit_invariant import LimitInvariant, LiveLease
from freehold.model.job import Job
from freehold.model.state import FINAL, LEASED, TRANSITIONS, State
from freehold.store.rows import micros_of
from freehold.store.statements import Rows, Statement, StatementGroup
from freehold.store.store import Store

#: Statements of an owner: they count only while the lease holds.
_OWNERS = frozenset({"succeed", "renew", "start", "note"})
_OPERATORS = frozenset({"revive", "resolve"})


@dataclass(frozen=True, slots=True)
class RowSnapshot:
    """What matters of a job, as it was after the last write to it."""

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
        tell: Callable[[str, str], None],
        room: LimitInvariant,
    ) -> None:
        self._store = store
        self._clock = clock
        #: Hears of every change of a job, for the story.
        self._tell = tell
        self._room = room
        self._last_token = 0
        self.jobs: dict[int, RowSnapshot] = {}
        self.violations: list[Violation] = []
        self.transitions: Counter[tuple[State | None, State]] = Counter()

    def look(self, who: str, batch: StatementGroup, answers: list[Rows]) -> None:
        if not batch.writes:
            self._check_lanes(batch, answers)
            return
        touched: dict[int, list[tuple[Statement, dict[str, Any]]]] = {}
        for statement, rows in zip(batch.statements, answers, strict=True):
            for job_id, row in _touched(statement, rows):
                touched.setdefault(job_id, []).append((statement, row))
        if not touched:
            return
        found = self._store.read(sorted(touched))
        claimed = self._last_token
        for job_id, job in sorted(found.items()):
            self._judge(who, job_id, _seen(job), touched[job_id])
            claimed = max(claimed, self.jobs[job_id].token)
        self._last_token = claimed
        if self._room and any(statement.name in CLAIMS for statement in batch.statements):
            self._check_room(sorted(found))

    def _judge(
        self, who: str, job_id: int, after: RowSnapshot, by: list[tuple[Statement, dict[str, Any]]]
    ) -> None:
        before = self.jobs.get(job_id)
        self.jobs[job_id] = after
        if before == after:
            return
        statement, row = by[0]
        if before is None or before.state is not after.state:
            self._moved(who, job_id, before, after, statement.name)
        if before is None:
            return
        if before.state in LEASED:
            # Of several rows about one job, only its owner's may have changed it.
            if not any(_is_owners(before, *each) for each in by):
                self._check_fence(who, job_id, before, statement, row)
            else:
                self._check_time(job_id, before, statement)
        elif statement.name in CLAIMS:
            self._check_claim(who, job_id, before, after)
        elif before.state in FINAL and not _is_operators(statement, row):
            self._violate("I2", job_id, f"{who} changed a finished job by {statement.name}")

    def _moved(
        self, who: str, job_id: int, before: RowSnapshot | None, after: RowSnapshot, how: str
    ) -> None:
        source = before.state if before is not None else None
        self.transitions[source, after.state] += 1
        self._tell(who, f"{how}: job {job_id} {source or 'is new'} -> {after.state}")
        if source is not None and after.state not in TRANSITIONS[source]:
            self._violate("S0.1", job_id, f"{who} moved it from {source} to {after.state}")

    def _check_fence(
        self, who: str, job_id: int, before: RowSnapshot, statement: Statement, row: dict[str, Any]
    ) -> None:
        now = self._clock.micros
        if statement.name in CLAIMS:
            self._violate("S0.2", job_id, f"{who} claimed it while {before.owner} had leased it")
        elif statement.name == "settle" and row["expired"]:
            if now < before.expires:
                left = (before.expires - now) / 1e6
                self._violate("S0.7", job_id, f"{who} recovered a lease that held for {left:g} s")
        elif statement.name in _OWNERS or statement.name == "settle":
            self._violate(
                "I2",
                job_id,
                f"{statement.name} of {who}, token {row['token']}, was accepted while "
                f"{before.owner} had leased it by token {before.token}",
            )

    def _check_time(self, job_id: int, before: RowSnapshot, statement: Statement) -> None:
        late = (self._clock.micros - before.expires) / 1e6
        if late >= 0:
            self._violate(
                "P1",
                job_id,
                f"{statement.name} of {before.owner} was accepted {late:g} s after its lease's end",
            )

    def _check_claim(self, who: str, job_id: int, before: RowSnapshot, after: RowSnapshot) -> None:
        if after.state not in LEASED:
            return  # parked
        if after.token <= self._last_token:
            self._violate("S3.4", job_id, f"its token {after.token} was not new")
        if after.attempt != before.attempt + 1:
            self._violate("S1.2", job_id, f"{who} claimed it and counted no attempt")
        if after.run_at > self._clock.micros:
            self._violate("S1.1", job_id, f"{who} claimed it before it was due")

    def is_held_up(self, job_id: int) -> bool:
        """By a limit whose places are all taken just now."""
        job = self.jobs[job_id]
        return self._room.is_taken_for(LiveLease(job.queue, job.limit_key), self._live())

    def _live(self) -> list[LiveLease]:
        now = self._clock.micros
        return [
            LiveLease(each.queue, each.limit_key)
            for each in self.jobs.values()
            if each.state in LEASED and each.expires > now
        ]

    def _check_room(self, claimed: list[int]) -> None:
        live = self._live()
        for job_id in claimed:
            new = self.jobs[job_id]
            if new.state in LEASED:
                for text in self._room.broken_by(LiveLease(new.queue, new.limit_key), live):
                    self._violate("S0.10", job_id, text)

    def _check_lanes(self, batch: StatementGroup, answers: list[Rows]) -> None:
        """A net that catches something would hide who let it fall: here, where what ends a job and
        what passes its lane on cannot be parted, it must never have to."""
        for statement, rows in zip(batch.statements, answers, strict=True):
            if statement.name == "adrift":
                for target in (target for target, queue in rows if queue is not None):
                    self._violate(
                        "S4.3", 0, f"nobody holds lane {target}, and somebody waits there"
                    )

    def _violate(self, rule: str, job_id: int, text: str) -> None:
        self.violations.append(Violation(rule, job_id, text, self._clock.micros))


def _touched(statement: Statement, rows: Rows) -> Iterator[tuple[int, dict[str, Any]]]:
    if statement.name in CLAIMS:
        yield from ((row[0], {}) for row in rows if row[0] is not None)
    elif statement.name.startswith("enqueue"):
        # Of a keyed one the place comes first, of a single one what else is known comes last.
        at = int(statement.name == "enqueue_keyed")
        yield from ((row[at], {}) for row in rows)
    elif "id" in statement.params:
        yield statement.params["id"], dict(statement.params)
    else:
        yield from ((row["id"], dict(row)) for row in statement.rows or () if "id" in row)


def _is_owners(before: RowSnapshot, statement: Statement, row: dict[str, Any]) -> bool:
    if statement.name not in _OWNERS and (statement.name != "settle" or row["expired"]):
        return False
    owner = row["owner"] if "owner" in row else statement.params["owner"]
    return (owner, row["token"]) == (before.owner, before.token)


def _is_operators(statement: Statement, row: dict[str, Any]) -> bool:
    return statement.name in _OPERATORS or (statement.name == "settle" and row["seen_stage"] == "x")


def _seen(job: Job) -> RowSnapshot:
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
