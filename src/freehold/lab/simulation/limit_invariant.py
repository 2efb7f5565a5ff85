"""Whether live leases exceed a limit, counted again after every claim."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from freehold.lab.checker.check_limits import limit_for_key
from freehold.model.limit import ALL_QUEUES, Limit


@dataclass(frozen=True, slots=True)
class LiveLease:
    """A job with a valid lease."""

    queue: str
    limit_key: str | None


class LimitInvariant:
    """The limits of one scenario."""

    def __init__(self, limits: dict[str, Limit], queue_limits: dict[str, Limit]) -> None:
        self._limits = limits
        self._queue_limits = queue_limits

    def __bool__(self) -> bool:
        return bool(self._limits or self._queue_limits)

    def broken_by(self, new: LiveLease, live: Iterable[LiveLease]) -> Iterator[str]:
        """Describes every limit that the new lease, itself counted in ``live``, exceeds."""
        for name, count, limit in self._usage(new, list(live)):
            if count > limit:
                yield f"{count} leases of {name} are live; the limit is {limit}"

    def is_full_for(self, waiting: LiveLease, live: Iterable[LiveLease]) -> bool:
        """Whether a limit keeps this job waiting until another lease ends."""
        return any(count >= limit for _, count, limit in self._usage(waiting, list(live)))

    def _usage(self, lease: LiveLease, live: list[LiveLease]) -> Iterator[tuple[str, int, int]]:
        """For each limit that counts this lease: its name, the live leases, the maximum."""
        key = lease.limit_key
        if key is not None and (limit := limit_for_key(self._limits, key)) is not None:
            yield from _count(f"key {key}", limit, [each.limit_key == key for each in live])
        for queue in (lease.queue, ALL_QUEUES):
            if (limit := self._queue_limits.get(queue)) is not None:
                counted = [queue in (each.queue, ALL_QUEUES) for each in live]
                yield from _count(f"queue {queue}", limit, counted)


def _count(name: str, limit: Limit, counted: list[bool]) -> Iterator[tuple[str, int, int]]:
    if limit.max_leases is not None:
        yield name, sum(counted), limit.max_leases
