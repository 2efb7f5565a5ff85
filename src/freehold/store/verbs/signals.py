"""Signals: named values, stored once, for jobs that wait for them.

Sending only adds a row, also inside a caller's transaction. After its commit a sweep delivers the
signal: it wakes the jobs that are suspended with it. A job that is about to be suspended looks for
its signal in the transaction that suspends it (`transition.sql`). Both take the lock of the name
first, so one of them sees the other.
"""

from __future__ import annotations

from freehold.model.signal import SignalInfo
from freehold.model.step import StepKind
from freehold.model.timestamps import time_of
from freehold.store import notifications
from freehold.store.statements import Statement, Verb, read, together
from freehold.store.types import AwaitedSignal, LeaseKey


def send_signal(name: str, value: bytes, by: str | None, keep_seconds: float) -> Verb[bool]:
    """Store a signal. False: it was sent before, and keeps its first value."""
    sending = Statement(
        "send_signal",
        {"name": name, "value": value.decode(), "by": by, "keep_seconds": keep_seconds},
    )
    wake = notifications.notify_within([notifications.SCHEDULED])
    rows, _ = yield from together(sending, wake)
    return bool(rows)


def await_signal(
    owner: str, lease: LeaseKey, name: str, number: int, seconds: float, hidden: bool = False
) -> Verb[AwaitedSignal | None]:
    """The step of a wait: with the value of the signal, timed out, or waiting. None: the lease was
    lost, and nothing was stored."""
    key = {"id": lease.job_id, "token": lease.token, "owner": owner}
    wait = {"name": name, "number": number, "seconds": seconds, "hidden": hidden}
    while True:
        (rows,) = yield from together(Statement("await_signal", {**key, **wait}))
        if not rows:
            return None
        kind, value, left = rows[0]
        if kind is not None:  # else an earlier call has stored the step just now
            return AwaitedSignal(StepKind(kind), value, float(left or 0.0))


def signals(after: str, limit: int) -> Verb[list[SignalInfo]]:
    """A page of the signals that are kept, by name."""
    rows = yield from read("signals", after=after, limit=limit)
    return [
        SignalInfo(name, time_of(at), by, time_of(expires_at), bool(delivered))
        for name, at, by, expires_at, delivered in rows
    ]


def deliver_signals(limit: int) -> Verb[int]:
    """Wake the jobs that wait for signals which were sent. Returns how many."""
    found = yield from read("undelivered_signals", limit=limit)
    if not found:
        return 0
    names = [{"name": name} for (name,) in found]
    _, woken = yield from together(
        Statement("lock_signals", {}, names), Statement("deliver_signals", {}, names)
    )
    return len(woken)
