"""The kinds of simulated work that the demo runs."""

from __future__ import annotations

from freehold.model.simulated_kind import SimulatedKind

KINDS = {
    kind.name: kind
    for kind in (
        SimulatedKind("quick", 1, 20),
        SimulatedKind("steady", 200, 800),
        SimulatedKind("flaky", 20, 200, fail_attempts=1),
        SimulatedKind("broken", 50, 50, "fail", retryable=False),
        SimulatedKind("refusing", 20, 20, "cancel"),
    )
}
