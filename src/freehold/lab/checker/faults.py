"""The recorded faults, which decide whether a lost lease is excused."""

from __future__ import annotations

from collections.abc import Sequence

from freehold.lab.checker.job_intervals import FOREVER
from freehold.lab.checker.record import Record

_MICROS = 1_000_000
#: A fault is recorded when it begins; its effect may come this much later.
LATE_MICROS = 4 * _MICROS
#: Statements that renew or end a lease, or run before a renewal. One that fails is retried before
#: the lease expires; a second failure may leave no time for that.
_RENEWAL_STATEMENTS = ("renew", "mark_running", "stop_requests", "succeed", "transition")
_MANY_RENEWALS = 2
#: The target of a fault that hides the outcome of a handler's transaction.
A_COMMIT = "a commit"
#: The actor of a fault that concerns all machines.
STORE = "store"
#: The same for faults of connections with unknown statements.
_MANY_UNKNOWN = 3


class FaultIntervals:
    """The faults of each machine."""

    def __init__(self, records: Sequence[Record]) -> None:
        self._grave: dict[str, list[tuple[int, int]]] = {}
        self._all: dict[str, list[int]] = {}
        self._on_renewals: dict[str, list[int]] = {}
        self._unknown_target: dict[str, list[int]] = {}
        self._on_commits: dict[str, list[int]] = {}
        #: By the sender and the name of the statement.
        self._late: dict[tuple[str, str], list[int]] = {}
        self.healed_at: int | None = None
        for record in records:
            if record.kind == "healed":
                self.healed_at = record.at
            if record.kind != "fault":
                continue
            self._all.setdefault(record.actor, []).append(record.at)
            if "to" not in record.info:
                self._unknown_target.setdefault(record.actor, []).append(record.at)
            if record.info.get("to") == A_COMMIT:
                self._on_commits.setdefault(record.actor, []).append(record.at)
            if record.info["kind"] == "arrived_late":
                for name in record.info["to"].split("+"):
                    self._late.setdefault((record.actor, name), []).append(record.at)
            if _concerns_leases(record):
                self._on_renewals.setdefault(record.actor, []).append(record.at)
            if record.info.get("grave"):
                until = record.info.get("until") or FOREVER
                self._grave.setdefault(record.actor, []).append((record.at, until))

    def grave(self, owner: str | None, start: int, end: int) -> bool:
        """Whether a fault happened that can cost a lease."""
        if owner is None:
            return False
        machine = _machine(owner)
        grave = (*self._grave.get(machine, ()), *self._grave.get(STORE, ()))
        if any(begin <= end and start <= until for begin, until in grave):
            return True
        return (
            sum(start <= at <= end for at in self._on_renewals.get(machine, ())) >= _MANY_RENEWALS
        )

    def was_hit_often(self, owner: str | None, start: int, end: int) -> bool:
        """Whether so many connections broke that one renewal after another may have failed."""
        unknown_target = self._unknown_target.get(_machine(owner or ""), ())
        return sum(start <= at <= end for at in unknown_target) >= _MANY_UNKNOWN

    def may_hide_a_commit(self, owner: str | None, start: int, end: int) -> bool:
        machine = _machine(owner or "")
        faults = (*self._on_commits.get(machine, ()), *self._unknown_target.get(machine, ()))
        return any(start <= at <= end for at in faults)

    def arrived_late(self, actor: str, statement: str) -> list[int]:
        """When statements of this name were executed that their sender had given up."""
        return self._late.get((actor, statement), [])

    def count(self, owner: str | None, start: int, end: int) -> int:
        return sum(start <= at <= end for at in self._all.get(_machine(owner or ""), ()))


def _machine(owner: str) -> str:
    """The workers of a tenant host are named after its machine: ``machine/number``."""
    return owner.partition("/")[0]


def _concerns_leases(record: Record) -> bool:
    """A slow claim counts too: its lease began when it was sent and is partly used up."""
    to = record.info.get("to", "")
    claims = any(name.startswith("claim") for name in to.split("+"))
    is_slow_claim = claims and record.info["kind"] == "slow"
    return is_slow_claim or any(name in to for name in _RENEWAL_STATEMENTS)
