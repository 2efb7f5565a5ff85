"""The phases of a held lease: the table in the module's head is the one that the code follows."""

from __future__ import annotations

import itertools

import pytest

from freehold.worker import held_leases
from freehold.worker.held_leases import MOVES, OPEN, HeldLease, HeldLeases, Phase, StopReason
from tests.tenants.simulated_claims import held_lease


def lease_in(phase: Phase) -> HeldLease:
    lease = held_lease()
    lease.phase = phase
    return lease


def documented() -> dict[Phase, set[Phase]]:
    """The table of the docstring: the phases that its third column names."""
    assert held_leases.__doc__ is not None
    lines = held_leases.__doc__.splitlines()
    (head,) = (line for line in lines if line.startswith("    phase "))
    rows = lines[lines.index(head) + 1 :]
    moves = {}
    for row in itertools.takewhile(str.strip, rows):
        words = row[head.index("next") :].replace(";", " ").split()
        moves[Phase(row.split()[0])] = {each for each in Phase if each in words}
    return moves


def test_the_table_of_phases_is_that_of_the_code() -> None:
    assert documented() == {phase: set(after) for phase, after in MOVES.items()}


@pytest.mark.parametrize(("before", "after"), list(itertools.product(Phase, Phase)))
def test_a_lease_makes_only_the_moves_of_the_table(before: Phase, after: Phase) -> None:
    lease = lease_in(before)
    is_there = lease.move_to(after)
    assert lease.phase is (after if after in MOVES[before] else before)
    assert is_there is (lease.phase is after)


@pytest.mark.requirement("S0.3")
@pytest.mark.parametrize("phase", list(Phase))
def test_a_lease_with_an_end_being_written_is_not_given_up(phase: Phase) -> None:
    """The store decides then; a handler that is stopped as lost would write nothing."""
    lease, leases = lease_in(phase), HeldLeases()
    leases.add(lease)
    leases.abandon(lease)
    is_lost = phase in OPEN or phase is Phase.LOST
    assert (lease.stop_reason is StopReason.LEASE_LOST) is is_lost
    assert len(leases) == (0 if is_lost else 1)


def test_a_rollback_after_the_end_was_submitted_does_not_reopen_the_lease() -> None:
    """A thread that outlasts its stop rolls back while the finisher writes its outcome."""
    lease = lease_in(Phase.COMMITTING)
    assert lease.move_to(Phase.ENDING)
    assert not lease.move_to(Phase.IN_TRANSACTION)
    assert not lease.move_to(Phase.RUNNING)
    assert lease.phase is Phase.ENDING
