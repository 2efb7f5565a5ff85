"""Simulated kinds of work: duration and outcome. The same input always behaves the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, Literal

from freehold.errors import BadSettings

KindOutcome = Literal["succeed", "fail", "cancel"]
_OUTCOMES = ("succeed", "fail", "cancel")


@dataclass(frozen=True, slots=True)
class SimulatedKind:
    """One configured behaviour."""

    name: str
    low_ms: float
    high_ms: float
    outcome: KindOutcome = "succeed"
    retryable: bool = True
    fail_attempts: int = 0

    def seconds(self, text: str) -> float:
        """The duration for this input."""
        return (self.low_ms + (self.high_ms - self.low_ms) * share(self.name, text)) / 1000.0

    def ends(self, attempt: int) -> KindOutcome:
        """The outcome of this attempt."""
        return "fail" if attempt <= self.fail_attempts else self.outcome


def share(*parts: str) -> float:
    """A number in [0, 1) that depends on the parts only."""
    digest = hashlib.blake2b("\0".join(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def kind_of(name: str, given: Mapping[str, Any], where: str) -> SimulatedKind:
    """A kind from its configuration. Raises BadSettings for unknown or invalid values."""
    known = {"duration_ms", *(f.name for f in fields(SimulatedKind)[3:])}
    if not isinstance(given, Mapping):
        raise BadSettings(f"{where}: kind {name}: give a table with {', '.join(sorted(known))}")
    for key in given:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            help = f"did you mean {close[0]}?" if close else f"known are {', '.join(sorted(known))}"
            raise BadSettings(f"{where}: kind {name} has no setting {key}; {help}")
    low, high = _duration(name, given.get("duration_ms", 0), where)
    outcome = given.get("outcome", "succeed")
    if outcome not in _OUTCOMES:
        raise BadSettings(
            f"{where}: kind {name}: outcome = {outcome!r}: choose succeed, fail, cancel"
        )
    retryable, failures = given.get("retryable", True), given.get("fail_attempts", 0)
    if not isinstance(retryable, bool) or not isinstance(failures, int) or failures < 0:
        raise BadSettings(
            f"{where}: kind {name}: retryable is true or false, fail_attempts a number of 0 or more"
        )
    return SimulatedKind(name, low, high, outcome, retryable, failures)


def _duration(name: str, given: Any, where: str) -> tuple[float, float]:
    ends = given if isinstance(given, list) else [given, given]
    numbers = all(isinstance(e, int | float) and not isinstance(e, bool) for e in ends)
    if len(ends) != 2 or not numbers or not 0 <= ends[0] <= ends[1] <= 86_400_000:
        raise BadSettings(
            f"{where}: kind {name}: duration_ms = {given!r}: give milliseconds, or [low, high]"
        )
    return float(ends[0]), float(ends[1])
