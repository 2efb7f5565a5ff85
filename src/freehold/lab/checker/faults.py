"""Faults as they were written down: what excuses a lost lease, and what does not."""

from __future__ import annotations

from collections.abc import Sequence

from freehold.lab.checker.job_intervals import FOREVER
from freehold.lab.checker.record import Record

_MICROS = 1_000_000
#: A fault is noted when it begins; what it does can come as much later.
LATE_MICROS = 4 * _MICROS
#: What keeps a lease or ends it, and what a keeper does before it renews. One that fails is tried
#: again in time; more than one may not be.
_RENEWING = ("renew", "start", "requests", "succeed", "settle")
_MANY = 2
#: To whom a fault happens that happens to all machines.
STORE = "store"
#: Where only the connection is known that a fault struck, and not what it carried.
_MANY_BLIND = 3


class FaultIntervals:
    """By machine."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._graves: dict[str, list[tuple[int, int]]] = {}
        self._any: dict[str, list[int]] = {}
        self._keeping: dict[str, list[int]] = {}
        self._blind: dict[str, list[int]] = {}
        self.healed_at: int | None = None
        for record in records:
            if record.what == "healed":
                self.healed_at = record.at
            if record.what != "fault":
                continue
            self._any.setdefault(record.who, []).append(record.at)
            if "to" not in record.info:
                self._blind.setdefault(record.who, []).append(record.at)
            if _concerns_leases(record):
                self._keeping.setdefault(record.who, []).append(record.at)
            if record.info.get("grave"):
                until = record.info.get("until") or FOREVER
                self._graves.setdefault(record.who, []).append((record.at, until))

    def grave(self, who: str | None, start: int, end: int) -> bool:
        """Whether something happened that can cost a lease."""
        if who is None:
            return False
        machine = _machine(who)
        graves = (*self._graves.get(machine, ()), *self._graves.get(STORE, ()))
        if any(begin <= end and start <= until for begin, until in graves):
            return True
        return sum(start <= at <= end for at in self._keeping.get(machine, ())) >= _MANY

    def was_hit_often(self, who: str | None, start: int, end: int) -> bool:
        """Connections that broke, nobody knows under what: one renewal after the other."""
        blind = self._blind.get(_machine(who or ""), ())
        return sum(start <= at <= end for at in blind) >= _MANY_BLIND

    def count(self, who: str | None, start: int, end: int) -> int:
        return sum(start <= at <= end for at in self._any.get(_machine(who or ""), ()))


def _machine(who: str) -> str:
    """Where one process serves tenants, its workers are called by its name and their own."""
    return who.partition("/")[0]


def _concerns_leases(record: Record) -> bool:
    """A lease is counted from when its claim was sent: one that was slow has used some of it up."""
    to = record.info.get("to", "")
    claims = any(name.startswith("claim") for name in to.split("+"))
    is_slow_claim = claims and record.info["kind"] == "slow"
    return is_slow_claim or any(name in to for name in _RENEWING)
