"""How much room limits leave, counted anew after every claim by whoever sees every write."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from leasehold.model.limit import ALL_QUEUES, Limit
from leasehold.proof.limits import rule_of


@dataclass(frozen=True, slots=True)
class Live:
    """A job whose lease holds."""

    queue: str
    limit_key: str | None


class Room:
    """Of one program."""

    def __init__(self, limits: dict[str, Limit], queue_limits: dict[str, Limit]) -> None:
        self._limits = limits
        self._queue_limits = queue_limits

    def __bool__(self) -> bool:
        return bool(self._limits or self._queue_limits)

    def broken_by(self, new: Live, live: Iterable[Live]) -> Iterator[str]:
        """What there is too much of, now that there is this one too."""
        live = list(live)
        key = new.limit_key
        if key is not None and (limit := rule_of(self._limits, key)) is not None:
            yield from _too_many(f"key {key}", limit, live, lambda each: each.limit_key == key)
        for queue in (new.queue, ALL_QUEUES):
            if queue in self._queue_limits:
                yield from _too_many(
                    f"queue {queue}", self._queue_limits[queue], live,
                    lambda each, queue=queue: queue in (each.queue, ALL_QUEUES),  # type: ignore[misc]
                )  # fmt: skip


def _too_many(
    name: str, limit: Limit, live: Iterable[Live], counts: Callable[[Live], bool]
) -> Iterator[str]:
    count = sum(map(counts, live))
    if limit.max_leases is not None and count > limit.max_leases:
        yield f"{count} leases of {name} are live: {limit.max_leases} may be"
