"""At the end: everything that is stored, held against everything that was written down."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from freehold.app import Freehold
from freehold.lab.checker import check_lanes
from freehold.lab.checker.checker import RULES
from freehold.lab.checker.evidence import Evidence
from freehold.lab.checker.indexed_history import IndexedHistory
from freehold.lab.checker.job_intervals import Interval
from freehold.lab.checker.record import Record
from freehold.lab.checker.violation import Violation
from freehold.model.history import Event, EventKind
from freehold.model.job import Job
from freehold.model.limit import Limit
from freehold.model.state import FINAL, State
from freehold.store.types import JobFilter
from tests.chaos.plan import LIMITED_KEY, LIMITED_TO

_MICROS = 1_000_000
#: Does not hold where transactions really run beside each other: claimers skip what others have
#: locked.
_NOT_HERE = (check_lanes.by_priority,)
_PAGE = 1000
#: As long as a stalled connection can keep a transaction open.
_COMMIT_LAG_MICROS = 5 * _MICROS


@dataclass(slots=True)
class Judgement:
    """What came of it all."""

    jobs: int = 0
    acknowledged: int = 0
    states: dict[str, int] = field(default_factory=dict)
    attempts: int = 0
    #: Second starts, by what had ended the attempt before.
    doubled: dict[str, int] = field(default_factory=dict)
    #: What producers and operators were told.
    answers: dict[str, int] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    #: From a kill to the end of its lease in the store, where nothing else happened meanwhile.
    worst_recovery_seconds: float = 0.0
    #: The same, whatever else happened.
    worst_disturbed_recovery_seconds: float = 0.0
    #: From the database's return to the next success.
    worst_standstill_seconds: float = 0.0

    def of_rules(self, *rules: str) -> int:
        return sum(violation.rule in rules for violation in self.violations)


def gather_evidence(app: Freehold, events: list[Event], records: list[Record]) -> Evidence:
    jobs = {job.id: job for job in _every_job(app)}
    told: dict[int, list[Event]] = {job_id: [] for job_id in jobs}
    for event in events:
        told.setdefault(event.job_id, []).append(event)
    return Evidence(
        records, jobs, told, {LIMITED_KEY: Limit(LIMITED_TO)}, commit_lag_micros=_COMMIT_LAG_MICROS
    )


def _every_job(app: Freehold) -> Iterator[Job]:
    before: int | None = None
    while True:
        page = app.client.store.page(JobFilter(limit=_PAGE, before=before))
        yield from page.jobs
        if page.next is None:
            return
        before = page.next


def judge(evidence: Evidence) -> Judgement:
    case = IndexedHistory(evidence)
    found = Judgement(jobs=len(evidence.jobs), attempts=len(case.runs) + len(case.doubles))
    found.states = dict(Counter(str(job.state) for job in evidence.jobs.values()))
    found.violations = [
        violation for rule in RULES if rule not in _NOT_HERE for violation in rule(case)
    ]
    found.doubled = _doubled(case)
    found.acknowledged = len(
        {
            job_id
            for question in case.questions
            if question.told is not None
            for job_id, _created in question.told.info.get("answers", ())
        }
    )
    found.answers = dict(
        Counter(
            question.told.info.get("error", "answered") if question.told else "never answered"
            for question in case.questions
        )
    )
    _measure(case, found)
    return found


def _doubled(case: IndexedHistory) -> dict[str, int]:
    counts: Counter[str] = Counter()
    runs: dict[int, list[int]] = {}
    for job_id, token in case.runs:
        runs.setdefault(job_id, []).append(token)
    for job_id, tokens in runs.items():
        life = case.lives.get(job_id)
        for token in sorted(tokens)[:-1]:
            span = life.by_token.get(token) if life is not None else None
            counts[_cause(span)] += 1
    return dict(counts)


def _cause(span: Interval | None) -> str:
    if span is None or span.kind is None:
        return "unexplained"
    return "brought back by hand" if span.state in FINAL else str(span.kind)


def _measure(case: IndexedHistory, found: Judgement) -> None:
    faults = [record for record in case.evidence.records if record.what == "fault"]
    kills = {record.who: record.at for record in faults if record.info["kind"] == "kill"}
    shared = sorted(
        (record.at, record.info["until"], record.info["kind"])
        for record in faults
        if record.who == "everybody"
    )
    for life in case.lives.values():
        for span in life.spans:
            killed = kills.get(span.owner or "")
            if span.kind is not EventKind.LEASE_LOST or killed is None or span.end < killed:
                continue
            seconds = (span.end - killed) / _MICROS
            found.worst_disturbed_recovery_seconds = max(
                found.worst_disturbed_recovery_seconds, seconds
            )
            calm = not any(at <= span.end and killed <= until for at, until, _ in shared)
            if calm:
                found.worst_recovery_seconds = max(found.worst_recovery_seconds, seconds)
    successes = sorted(
        span.end
        for life in case.lives.values()
        for span in life.spans
        if span.state is State.SUCCEEDED
    )
    for _, until, kind in shared:
        if kind in ("hard_stop", "promotion", "blackhole", "disk_full"):
            place = bisect_left(successes, until)
            after = successes[place] if place < len(successes) else until
            found.worst_standstill_seconds = max(
                found.worst_standstill_seconds, (after - until) / _MICROS
            )
