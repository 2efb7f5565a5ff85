"""N8 to N10: steps that returned stay, their writes are fenced, and no signal is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from freehold.lab.checker.indexed_history import IndexedHistory
from freehold.lab.checker.job_intervals import LeaseInterval
from freehold.lab.checker.record import Record
from freehold.lab.checker.violation import Violation
from freehold.model.history import EventKind
from freehold.model.step import Step, StepKind
from freehold.model.timestamps import micros_of

#: A worker's clock may be fast while it sleeps in place.
_CLOCK_MICROS = 50_000


def returned_steps_never_run_again(history: IndexedHistory) -> Iterator[Violation]:
    """N8: neither in the same attempt nor in a later one, and their value stays. An owner that has
    lost its lease may call the function once more, before it learns that."""
    got: dict[tuple[int, str], Record] = {}
    for record in history.parts:
        key = record.job, record.info["step"]
        first = got.get(key)
        if first is None:
            if record.kind == "got":
                got[key] = record
        elif record.kind == "called" and record.token >= first.token:
            text = f"step {key[1]} ran again with token {record.token}, after it had returned"
            yield Violation("N8", record.job, text, record.at)
        elif record.kind == "got" and record.info["value"] != first.info["value"]:
            values = f"{first.info['value']}, and later {record.info['value']}"
            yield Violation("N8", record.job, f"step {key[1]} returned {values}", record.at)


def stored_steps_are_those_that_returned(history: IndexedHistory) -> Iterator[Violation]:
    """N8: what a handler got is stored."""
    stored = {(job_id, step.name): step for job_id, step in _steps(history)}
    for record in history.parts:
        step = stored.get((record.job, record.info["step"]))
        if record.kind != "got" or record.job not in history.jobs:
            continue
        name = record.info["step"]
        if step is None:
            yield Violation("N8", record.job, f"step {name} returned and is not stored", record.at)
        elif (
            step.kind in (StepKind.RESULT, StepKind.SIGNAL) and _value(step) != record.info["value"]
        ):
            text = f"step {name} returned {record.info['value']}, and {_value(step)} is stored"
            yield Violation("N8", record.job, text, record.at)
        elif step.kind is StepKind.SLEEP and _is_early(record, step):
            yield Violation("N9", record.job, f"sleep {name} ended too early", record.at)


def _is_early(record: Record, step: Step) -> bool:
    return step.until is not None and record.at < micros_of(step.until) - _CLOCK_MICROS


def steps_are_written_by_owners(history: IndexedHistory) -> Iterator[Violation]:
    """N8: a stored value is that of the attempt which owned the job when it was stored."""
    for job_id, step in _steps(history):
        lease = history.jobs[job_id].by_token.get(step.token)
        at = micros_of(step.at)
        value = _value(step)
        if step.kind is StepKind.RESULT and isinstance(value, list) and value[0] != step.token:
            text = f"step {step.name} of token {step.token} has a value of token {value[0]}"
            yield Violation("N8", job_id, text, at)
        if lease is None or at > lease.end:
            text = f"step {step.name} was stored without the lease of token {step.token}"
            yield Violation("N8", job_id, text, at)


def own_rows_and_their_step_are_together(history: IndexedHistory) -> Iterator[Violation]:
    """N8: a transaction's rows are there once if its step is stored, and not at all otherwise."""
    rows = Counter(history.evidence.own_rows)
    stored = {(job_id, step.name) for job_id, step in _steps(history)}
    begun = {
        (record.job, record.info["step"])
        for record in history.parts
        if record.kind == "called" and "value" not in record.info
    }
    for job_id, name in sorted(begun | rows.keys()):
        count, is_stored = rows[job_id, name], (job_id, name) in stored
        if count != is_stored:
            how = "stored" if is_stored else "not stored"
            text = f"{count} rows of the transaction of step {name}, which is {how}"
            yield Violation("N8", job_id, text)


def signals_keep_their_first_value(history: IndexedHistory) -> Iterator[Violation]:
    """N10: one sender gets the result that it was the first, and every job gets its value."""
    for name, sent in _sent(history).items():
        first = [each for each in sent if each.info.get("first")]
        for each in first[1:]:
            text = f"{first[0].call} and {each.call} both were the first to send {name}"
            yield Violation("N10", 0, text, each.at)
        values = {first[0].call} if first else {each.call for each in sent}
        for job_id, step in _steps(history):
            if step.name == name and step.kind is StepKind.SIGNAL and _value(step) not in values:
                text = f"got {_value(step)} for signal {name}, which {sorted(values)} sent"
                yield Violation("N10", job_id, text, micros_of(step.at))


def no_signal_is_missed(history: IndexedHistory) -> Iterator[Violation]:
    """N10: no job is suspended for, and no wait ends without, a signal that was sent before."""
    stored_at = {
        name: min(each.at for each in sent if "error" not in each.info)
        for name, sent in _sent(history).items()
        if any("error" not in each.info for each in sent)
    }
    for job_id, step in _steps(history):
        sent_at = stored_at.get(step.name)
        is_late = step.until is not None and sent_at is not None and sent_at < micros_of(step.until)
        if step.kind is StepKind.TIMEOUT and is_late:
            text = f"its wait for {step.name} timed out after the signal was sent"
            yield Violation("N10", job_id, text, sent_at or 0)
    for name, sent_at in stored_at.items():
        for intervals in history.jobs.values():
            for lease in intervals.leases:
                if _waits_for_signal(history, lease) == name and lease.end > sent_at:
                    text = f"was suspended for signal {name}, which had been sent"
                    yield Violation("N10", intervals.job.id, text, lease.end)


def _waits_for_signal(history: IndexedHistory, lease: LeaseInterval) -> str | None:
    """The signal that a job waits for which was suspended, and was not woken in the same write."""
    run = history.run_of(lease)
    is_wait = lease.kind is EventKind.SUSPENDED and lease.due is not None
    if not is_wait or run is None or run.suspended is None:
        return None
    info = run.suspended.info
    return str(info["step"]) if info["waits"] == "signal" else None


def _steps(history: IndexedHistory) -> Iterator[tuple[int, Step]]:
    for job_id, steps in history.evidence.steps.items():
        yield from ((job_id, step) for step in steps)


def _value(step: Step) -> Any:
    return None if step.value is None else msgspec.json.decode(step.value)


def _sent(history: IndexedHistory) -> dict[str, list[Record]]:
    """The results of all sends of a signal, by its name."""
    sent: dict[str, list[Record]] = {}
    for each in history.invocations:
        if each.request.info.get("verb") == "send_signal":
            sent.setdefault(each.request.info["signal"], []).append(each.response or each.request)
    return sent
