"""How much room limits leave, counted anew after every claim by whoever sees every write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from freehold.lab.checker.check_limits import rule_of
from freehold.model.limit import ALL_QUEUES, Limit


@dataclass(frozen=True, slots=True)
class LiveLease:
    """A job whose lease holds."""

    queue: str
    limit_key: str | None


class LimitInvariant:
    """Of one program."""

    def __init__(self, limits: dict[str, Limit], queue_limits: dict[str, Limit]) -> None:
        self._limits = limits
        self._queue_limits = queue_limits

    def __bool__(self) -> bool:
        return bool(self._limits or self._queue_limits)

    def broken_by(self, new: LiveLease, live: Iterable[LiveLease]) -> Iterator[str]:
        """What there is too much of, now that there is this one too."""
        for name, count, most in self._counted(new, list(live)):
            if count > most:
                yield f"{count} leases of {name} are live: {most} may be"

    def is_taken_for(self, waiting: LiveLease, live: Iterable[LiveLease]) -> bool:
        """Whether it has to wait until one of the others has ended."""
        return any(count >= most for _, count, most in self._counted(waiting, list(live)))

    def _counted(self, one: LiveLease, live: list[LiveLease]) -> Iterator[tuple[str, int, int]]:
        """The limits that count this one: what of, how many there are, how many there may be."""
        key = one.limit_key
        if key is not None and (limit := rule_of(self._limits, key)) is not None:
            yield from _count(f"key {key}", limit, [each.limit_key == key for each in live])
        for queue in (one.queue, ALL_QUEUES):
            if (limit := self._queue_limits.get(queue)) is not None:
                ours = [queue in (each.queue, ALL_QUEUES) for each in live]
                yield from _count(f"queue {queue}", limit, ours)


def _count(name: str, limit: Limit, ours: list[bool]) -> Iterator[tuple[str, int, int]]:
    if limit.max_leases is not None:
        yield name, sum(ours), limit.max_leases
