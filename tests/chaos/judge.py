"""Compares the store with all records at the end of a run."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from freehold.app import Freehold
from freehold.lab.checker import check_lanes, check_liveness
from freehold.lab.checker.checker import RULES
from freehold.lab.checker.evidence import Evidence
from freehold.lab.checker.indexed_history import IndexedHistory
from freehold.lab.checker.job_intervals import LeaseInterval
from freehold.lab.checker.record import Record
from freehold.lab.checker.violation import Violation
from freehold.model.history import Event, EventKind
from freehold.model.job import Job
from freehold.model.limit import Limit
from freehold.model.state import FINAL, State
from freehold.model.step import Step
from freehold.store.types import JobFilter
from tests.chaos.judge_flows import FLOW_RULES, count_flows, flows_of
from tests.chaos.plan import CLUSTER_FAULTS, LIMITED_KEY, LIMITED_TO

_MICROS = 1_000_000
#: Does not hold for concurrent transactions, because a claim skips rows that others have locked;
#: and exits have a rule of their own.
_SKIPPED_RULES = (check_lanes.by_priority, check_liveness.no_part_crashes)
#: A handler could not be stopped.
_STUCK_CODE = 75
#: Stale writes, and limits, which are read from the store alone.
_WITH_LOSSES = ("I2", "S0.10")
_PAGE = 1000
#: How long a stalled connection can keep a transaction open.
_COMMIT_LAG_MICROS = 5 * _MICROS
#: Faults in which a connection waits for a server, or a commit for its standbys.
_STALLS = frozenset({"stall", "blackhole", "partition", "node_freeze", "lagging_crash"})
#: From a stall of a connection to the end of the process whose handler waits for it.
_STALL_MICROS = 20 * _MICROS


@dataclass(slots=True)
class Judgement:
    """The result of a run."""

    jobs: int = 0
    acknowledged: int = 0
    states: dict[str, int] = field(default_factory=dict)
    attempts: int = 0
    #: Second runs of a job, by the end of the attempt before.
    second_runs: dict[str, int] = field(default_factory=dict)
    #: Responses to producers and operators.
    responses: dict[str, int] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    #: Flows by kind and state, and what was in them.
    flows: dict[str, int] = field(default_factory=dict)
    #: From a kill to the stored end of its lease, if no other fault happened meanwhile.
    worst_recovery_seconds: float = 0.0
    #: The same, with other faults.
    worst_disturbed_recovery_seconds: float = 0.0
    #: From the database's return to the next success.
    worst_standstill_seconds: float = 0.0
    #: Of a cluster, by kind: from each fault to the end of the longest time without a success.
    first_job_seconds: dict[str, list[float]] = field(default_factory=dict)

    def of_rules(self, *rules: str) -> int:
        return sum(violation.rule in rules for violation in self.violations)


def gather_evidence(app: Freehold, events: list[Event], records: list[Record]) -> Evidence:
    jobs = {job.id: job for job in _every_job(app)}
    response: dict[int, list[Event]] = {job_id: [] for job_id in jobs}
    for event in events:
        response.setdefault(event.job_id, []).append(event)
    return Evidence(
        records,
        jobs,
        response,
        {LIMITED_KEY: Limit(LIMITED_TO)},
        commit_lag_micros=_COMMIT_LAG_MICROS,
        steps=_steps_of(app, jobs),
        flows=flows_of(app, jobs),
    )


def _steps_of(app: Freehold, jobs: dict[int, Job]) -> dict[int, list[Step]]:
    return {
        job_id: app._client.store.read_steps(job_id)
        for job_id, job in jobs.items()
        if job.policy.has_steps
    }


def _every_job(app: Freehold) -> Iterator[Job]:
    before: int | None = None
    while True:
        page = app._client.store.page(JobFilter(limit=_PAGE, before=before))
        yield from page.jobs
        if page.next is None:
            return
        before = page.next


def judge(evidence: Evidence) -> Judgement:
    history = IndexedHistory(evidence)
    found = Judgement(
        jobs=len(evidence.jobs), attempts=len(history.runs) + len(history.duplicate_starts)
    )
    found.states = dict(Counter(str(job.state) for job in evidence.jobs.values()))
    found.violations = [
        violation
        for rule in (*RULES, *FLOW_RULES, no_part_crashes)
        if rule not in _SKIPPED_RULES
        for violation in rule(history)
    ]
    found.second_runs = _second_runs(history)
    found.flows = count_flows(history)
    found.acknowledged = len(
        {
            job_id
            for invocation in history.invocations
            if invocation.response is not None
            for job_id, _created in invocation.response.info.get("results", ())
        }
    )
    found.responses = dict(
        Counter(
            invocation.response.info.get("error", "answered")
            if invocation.response
            else "no response"
            for invocation in history.invocations
        )
    )
    _measure(history, found)
    return found


def no_part_crashes(history: IndexedHistory) -> Iterator[Violation]:
    """A handler whose connection a fault has stalled waits for psycopg's cancel, for 5 seconds: as
    long as a worker waits for the handler before it gives the process up."""
    records = history.evidence.records
    faults = [each for each in records if each.kind == "fault" and each.info["kind"] in _STALLS]
    for record in records:
        if record.kind != "exited" or record.info["code"] == 0:
            continue
        at, code = record.at, record.info["code"]
        is_stalled = any(
            each.actor == record.actor
            and each.at <= at <= (each.info.get("until") or each.at) + _STALL_MICROS
            for each in faults
        )
        if code != _STUCK_CODE or not is_stalled:
            yield Violation("crash", 0, f"{record.actor} exited with code {code}", at)


def forgive_losses(judgement: Judgement) -> None:
    """With asynchronous replication a promotion loses commits: only the rules remain that hold
    for what is left."""
    judgement.violations = [each for each in judgement.violations if each.rule in _WITH_LOSSES]


def _second_runs(history: IndexedHistory) -> dict[str, int]:
    counts: Counter[str] = Counter()
    runs: dict[int, list[int]] = {}
    for job_id, token in history.runs:
        runs.setdefault(job_id, []).append(token)
    for job_id, tokens in runs.items():
        intervals = history.jobs.get(job_id)
        for token in sorted(tokens)[:-1]:
            lease = intervals.by_token.get(token) if intervals is not None else None
            counts[_cause(lease)] += 1
    return dict(counts)


def _cause(lease: LeaseInterval | None) -> str:
    if lease is None or lease.kind is None:
        return "unexplained"
    return "operator's retry" if lease.state in FINAL else str(lease.kind)


def _measure(history: IndexedHistory, found: Judgement) -> None:
    faults = [record for record in history.evidence.records if record.kind == "fault"]
    kills = {record.actor: record.at for record in faults if record.info["kind"] == "kill"}
    shared = sorted(
        (record.at, record.info["until"], record.info["kind"])
        for record in faults
        if record.actor == "all"
    )
    for intervals in history.jobs.values():
        for lease in intervals.leases:
            killed = kills.get(lease.owner or "")
            if lease.kind is not EventKind.LEASE_LOST or killed is None or lease.end < killed:
                continue
            seconds = (lease.end - killed) / _MICROS
            found.worst_disturbed_recovery_seconds = max(
                found.worst_disturbed_recovery_seconds, seconds
            )
            is_undisturbed = not any(at <= lease.end and killed <= until for at, until, _ in shared)
            if is_undisturbed:
                found.worst_recovery_seconds = max(found.worst_recovery_seconds, seconds)
    successes = sorted(
        lease.end
        for intervals in history.jobs.values()
        for lease in intervals.leases
        if lease.state is State.SUCCEEDED
    )
    for at, until, kind in shared:
        if kind in CLUSTER_FAULTS:
            seconds = (_end_of_longest_gap(successes, at, until) - at) / _MICROS
            found.first_job_seconds.setdefault(kind, []).append(round(seconds, 1))
        if kind in ("hard_stop", "promotion", "blackhole", "disk_full"):
            index = bisect_left(successes, until)
            after = successes[index] if index < len(successes) else until
            found.worst_standstill_seconds = max(
                found.worst_standstill_seconds, (after - until) / _MICROS
            )


def _end_of_longest_gap(times: list[int], at: int, until: int) -> int:
    """Of the gaps between times from ``at`` on, up to the first one after ``until``."""
    within = [at, *times[bisect_left(times, at) : bisect_left(times, until) + 1]]
    gaps = [(later - earlier, later) for earlier, later in pairwise(within)]
    return max(gaps)[1] if gaps else until
