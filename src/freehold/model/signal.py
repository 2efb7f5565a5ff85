"""Signals: named values that are sent to jobs from outside."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

#: For how long a signal is kept by default.
KEEP = timedelta(days=30)


class SignalInfo(msgspec.Struct, frozen=True):
    """A signal that was sent, without its value, which can be private. ``delivered``: the jobs that
    waited for it were woken; a job that waits for it later finds it until ``expires_at``."""

    name: str
    at: datetime
    by: str | None
    expires_at: datetime
    delivered: bool
