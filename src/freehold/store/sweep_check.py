"""What those who keep the store in order find there; belongs to `contract`."""

from __future__ import annotations

import msgspec


class SweepCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What a sweep would find: leases that ran out, jobs that wait for a limit_key, lanes whose
    pause has ended, parked jobs of known tasks. And when the next job falls due (0: now), and
    how many workers live, all of which sweep."""

    expired: bool
    limited: bool
    stopped: bool
    parked: bool
    due_seconds: float | None
    workers: int


class LaneScan(msgspec.Struct, frozen=True):
    """Lanes that nobody held although somebody waited there; and the last one that was looked at,
    "" if there are no more."""

    freed: tuple[str, ...]
    reached: str
