"""The evidence, indexed for the rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from freehold.errors import OutcomeUnknown
from freehold.lab.checker.evidence import Evidence
from freehold.lab.checker.faults import FaultIntervals
from freehold.lab.checker.job_intervals import (
    FOREVER,
    JobIntervals,
    LeaseInterval,
    lost_by_its_reason,
)
from freehold.lab.checker.record import Record
from freehold.model.history import Event
from freehold.model.timestamps import micros_of


@dataclass(slots=True)
class AttemptRun:
    """One run of a handler, as recorded by itself."""

    started: Record
    steps: list[Record] = field(default_factory=list)
    ended: Record | None = None
    #: What it waits for, if it was suspended.
    suspended: Record | None = None

    def add(self, record: Record) -> None:
        if record.kind == "step":
            self.steps.append(record)
        elif record.kind == "suspended":
            self.suspended = record
        else:
            self.ended = record

    @property
    def how(self) -> str | None:
        return None if self.ended is None else str(self.ended.info["how"])


@dataclass(slots=True)
class Invocation:
    """A call of a client or operator: its request, and its response if one came."""

    request: Record
    response: Record | None = None

    @property
    def may_act_until(self) -> int:
        """A write without a known outcome may be executed long after its caller gave it up."""
        response = self.response
        return FOREVER if response is None or self.is_unknown else response.at

    @property
    def is_unknown(self) -> bool:
        response = self.response
        return response is not None and response.info.get("error") == OutcomeUnknown.__name__


class IndexedHistory:
    """The input of every rule."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        #: Jobs by ``call.index``, which is one of their arguments.
        self.jobs_by_call: dict[str, list[int]] = {}
        waiting = _waiting_calls(evidence.records)
        was_lost = _recovered(evidence.records) if evidence.records_recoveries else None
        self.jobs: dict[int, JobIntervals] = {}
        for job_id, job in sorted(evidence.jobs.items()):
            call = msgspec.json.decode(job.args).get("call", "")
            self.jobs_by_call.setdefault(call, []).append(job_id)
            # What a job adds to its flow has the name of its call, with a suffix.
            waits = call in waiting or re.split(r"[/+]", call)[0] in waiting
            events = evidence.events.get(job_id, ())
            self.jobs[job_id] = JobIntervals(job, events, waits, was_lost or lost_by_its_reason)
        self.faults = FaultIntervals(evidence.records)
        self.runs: dict[tuple[int, int], AttemptRun] = {}
        #: Starts with the job and token of an earlier start.
        self.duplicate_starts: list[Record] = []
        self.invocations: list[Invocation] = []
        #: Calls and values of durable steps, in the order of time.
        self.parts: list[Record] = []
        #: Results of sources that nodes of workflows got as arguments.
        self.given = [record for record in evidence.records if record.kind == "given"]
        #: By worker.
        self._misfit_seconds: dict[str, float] = {}
        self._read()

    def _read(self) -> None:
        open_invocations: dict[tuple[str, str], Invocation] = {}
        for record in self.evidence.records:
            key = record.job, record.token
            match record.kind:
                case "begun" if "misfit_seconds" in record.info:
                    self._misfit_seconds[record.actor] = record.info["misfit_seconds"]
                case "started" if key in self.runs:
                    self.duplicate_starts.append(record)
                case "started":
                    self.runs[key] = AttemptRun(record)
                case "step" | "suspended" | "ended" if key in self.runs:
                    self.runs[key].add(record)
                case "called" | "got":
                    self.parts.append(record)
                case "requested":
                    invocation = Invocation(record)
                    self.invocations.append(invocation)
                    open_invocations[record.actor, record.call] = invocation
                case "responded":
                    open_invocations[record.actor, record.call].response = record

    def misfit_time_is_over(self, intervals: JobIntervals, lease: LeaseInterval) -> bool:
        """Whether the job was claimed after the longest wait for a worker whose code fits."""
        first = intervals.misfit_since(lease)
        if first is None or first.by is None:
            return False
        worker = first.by.partition("/")[0]  # a host has several, one for each tenant
        wait_seconds = self._misfit_seconds.get(worker, 0.0)
        return lease.start >= micros_of(first.at) + round(wait_seconds * 1_000_000)

    def run_of(self, lease: LeaseInterval) -> AttemptRun | None:
        return self.runs.get((lease.job, lease.token))

    def lanes(self) -> dict[str, list[JobIntervals]]:
        found: dict[str, list[JobIntervals]] = {}
        for intervals in self.jobs.values():
            if intervals.job.target is not None:
                found.setdefault(intervals.job.target, []).append(intervals)
        return found


def _recovered(records: Sequence[Record]) -> Callable[[Event], bool]:
    """Whether an event is the end of a lease by a recovery."""
    recovered = {(each.job, each.token) for each in records if each.kind == "recovered"}
    return lambda event: (event.job_id, event.token) in recovered


def _waiting_calls(records: Sequence[Record]) -> set[str]:
    """``call.index`` of the jobs that were enqueued with a delay or as pending."""
    return {
        f"{record.call}.{index}"
        for record in records
        if record.kind == "requested"
        for index, job in enumerate(record.info.get("jobs", ()))
        if job.get("waits")
    }
