"""The evidence, arranged for the rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from freehold.lab.checker.evidence import Evidence
from freehold.lab.checker.faults import FaultIntervals
from freehold.lab.checker.job_intervals import JobIntervals
from freehold.lab.checker.record import Record


@dataclass(slots=True)
class AttemptRun:
    """One start of a handler, as it wrote it down."""

    started: Record
    steps: list[Record] = field(default_factory=list)
    ended: Record | None = None

    @property
    def how(self) -> str | None:
        return None if self.ended is None else str(self.ended.info["how"])


@dataclass(slots=True)
class Question:
    """What somebody asked, and every answer that came."""

    asked: Record
    told: Record | None = None


class IndexedHistory:
    """What all rules look at."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        #: Which jobs came of which place of which call: their arguments say so.
        self.made: dict[str, list[int]] = {}
        waiting = _waiting(evidence.records)
        self.lives: dict[int, JobIntervals] = {}
        for job_id, job in sorted(evidence.jobs.items()):
            call = msgspec.json.decode(job.args).get("call", "")
            self.made.setdefault(call, []).append(job_id)
            self.lives[job_id] = JobIntervals(job, evidence.events.get(job_id, ()), call in waiting)
        self.troubles = FaultIntervals(evidence.records)
        self.runs: dict[tuple[int, int], AttemptRun] = {}
        #: Starts that had a job and token of another start.
        self.doubles: list[Record] = []
        self.questions: list[Question] = []
        self._read()

    def _read(self) -> None:
        open_questions: dict[tuple[str, str], Question] = {}
        for record in self.evidence.records:
            key = record.job, record.token
            match record.what:
                case "started" if key in self.runs:
                    self.doubles.append(record)
                case "started":
                    self.runs[key] = AttemptRun(record)
                case "step" if key in self.runs:
                    self.runs[key].steps.append(record)
                case "ended" if key in self.runs:
                    self.runs[key].ended = record
                case "asked":
                    question = Question(record)
                    self.questions.append(question)
                    open_questions[record.who, record.call] = question
                case "told":
                    open_questions[record.who, record.call].told = record

    def lanes(self) -> dict[str, list[JobIntervals]]:
        found: dict[str, list[JobIntervals]] = {}
        for life in self.lives.values():
            if life.job.target is not None:
                found.setdefault(life.job.target, []).append(life)
        return found


def _waiting(records: Sequence[Record]) -> set[str]:
    """Places of calls whose jobs were to wait."""
    return {
        f"{record.call}.{place}"
        for record in records
        if record.what == "asked" and record.info.get("verb") == "enqueue"
        for place, job in enumerate(record.info["jobs"])
        if job.get("waits")
    }
