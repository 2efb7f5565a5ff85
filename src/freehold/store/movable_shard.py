"""What moving a tenant needs of a place, besides what everybody does (see `places`).

At its old place a tenant is *locked up*: its tables have other names, so that whoever comes late
finds nothing and cannot write. At its new place it is absent, or half copied and known as such,
or whole: it becomes whole in one step.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

from freehold.errors import BadInput
from freehold.store.shard import Shard

#: Who holds a tenant back while it moves: a pause of this name ends with the move.
MOVER = "tenants-move"


class MovableShard(Shard, Protocol):
    """A place that tenants can leave, and come to. Each step can be repeated."""

    def holds(self, tenant: str) -> bool:
        """Whether something of this name is here, whole or not."""
        ...

    def alone(self, tenant: str) -> AbstractContextManager[bool]:
        """False if somebody else is moving it. Ends with the block, or with the process."""
        ...

    def is_locked_up(self, tenant: str) -> bool: ...

    def lock_up(self, tenant: str) -> bool:
        """Nobody writes to it from now on. False, and nothing done, while anything is leased."""
        ...

    def let_out(self, tenant: str) -> None:
        """As if it had never been locked up."""
        ...

    def drop_locked_up(self, tenant: str) -> None: ...

    def take_over(self, tenant: str, source: Any) -> None:
        """Copy what is locked up there, all or nothing, without the mover's pause. If it is
        whole here already, nothing is done."""
        ...


def cannot_move(source: Shard, goal: Shard) -> BadInput:
    return BadInput(
        f"cannot move from {source.shown} to {goal.shown}: they are stores of different kinds"
    )
