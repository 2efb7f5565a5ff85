"""The options of one job, as `Task.using`, the command line and the HTTP API take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from freehold.errors import BadInput
from freehold.model.job import DEFAULT_QUEUE, IDEMPOTENCY_SECONDS, PRIORITY_LIMIT
from freehold.model.meta import MetaValue, encode_meta
from freehold.model.names import check_key, check_name
from freehold.model.retry import MAX_ATTEMPTS_LIMIT, WAIT_LIMIT_SECONDS
from freehold.model.schedule import PREFIX as SCHEDULE_PREFIX
from freehold.model.start_by import check_start_by
from freehold.model.tenant import check_tenant
from freehold.model.timestamps import check_timestamp
from freehold.model.waiting import Debounce, Throttle, Unique, WaitingOption, chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of one job, checked when they are created."""

    queue: str = DEFAULT_QUEUE
    priority: int = 0
    run_at: datetime | None = None
    delay: float | timedelta | None = None
    target: str | None = None
    limit_key: str | None = None
    unique_key: str | None = None
    idempotency_key: str | None = None
    idempotency_seconds: float = IDEMPOTENCY_SECONDS
    max_attempts: int | None = None
    timeout: float | timedelta | None = None
    tags: tuple[str, ...] = ()
    connection: Any = None
    tenant: str | None = None
    meta: Mapping[str, MetaValue] | None = None
    wait: float | timedelta | None = None
    unique: Unique | None = None
    debounce: Debounce | None = None
    throttle: Throttle | None = None
    start_by: datetime | timedelta | float | None = None

    def __post_init__(self) -> None:
        check_name("queue", self.queue)
        _ = self.waiting_option  # the options of keys are checked first: others read them
        if self.tenant is not None:
            check_tenant(self.tenant)
        for name in ("target", "limit_key", "unique_key", "idempotency_key"):
            if getattr(self, name) is not None:
                check_key(name, getattr(self, name))
        for name, key in (("target", self.target), ("unique_key", self.key_until_end)):
            if (key or "").startswith(SCHEDULE_PREFIX):
                raise BadInput(
                    f"{name}={key!r}: keys that begin with {SCHEDULE_PREFIX!r} are those of "
                    "schedules: choose another"
                )
        for tag in tags_of(self.tags):
            check_name("tag", tag)
        encode_meta(self.meta)
        _check_times(self)
        _check_numbers(self)

    @property
    def delay_seconds(self) -> float | None:
        delay = self.delay if self.debounce is None else self.debounce.seconds
        return _seconds(delay)

    @property
    def key_until_end(self) -> str | None:
        """The key that no other unfinished job has."""
        if self.unique is None:
            return self.unique_key
        return self.unique.key if self.unique.until == "end" else None

    @property
    def waiting_option(self) -> WaitingOption | None:
        return chosen(
            self.unique,
            self.debounce,
            self.throttle,
            unique_key=self.unique_key,
            idempotency_key=self.idempotency_key,
            has_time=self.run_at is not None or self.delay is not None,
        )

    @property
    def timeout_seconds(self) -> float | None:
        return _seconds(self.timeout)


def _seconds(span: float | timedelta | None) -> float | None:
    return span.total_seconds() if isinstance(span, timedelta) else span


def _check_times(options: Options) -> None:
    if options.run_at is not None:
        if options.delay is not None:
            raise BadInput("run_at and delay exclude each other: give one of them")
        check_timestamp("run_at", options.run_at)
    seconds = options.delay_seconds
    if seconds is not None and not (_is_number(seconds) and 0 <= seconds <= WAIT_LIMIT_SECONDS):
        raise BadInput(f"delay={options.delay!r}: give 0 or more seconds, at most ten years")
    if options.start_by is not None:
        waits = options.waiting_option
        check_start_by(
            options.start_by,
            run_at=options.run_at,
            has_delay=options.delay is not None,
            has_waiting_key=not (waits is None or options.key_until_end is not None),
        )


def _check_numbers(options: Options) -> None:
    if not _is_whole(options.priority) or abs(options.priority) > PRIORITY_LIMIT:
        raise BadInput(
            f"priority={options.priority!r}: give a whole number from -{PRIORITY_LIMIT} to "
            f"{PRIORITY_LIMIT}; higher runs first"
        )
    attempts = options.max_attempts
    if attempts is not None and not (_is_whole(attempts) and 1 <= attempts <= MAX_ATTEMPTS_LIMIT):
        raise BadInput(f"max_attempts={attempts!r}: give 1 to {MAX_ATTEMPTS_LIMIT}")
    if options.timeout is not None:
        _check_span("timeout", options.timeout_seconds)
    _check_span("idempotency_seconds", options.idempotency_seconds)


def _check_span(name: str, seconds: float | None) -> None:
    if seconds is None or not (_is_number(seconds) and 0.001 <= seconds <= WAIT_LIMIT_SECONDS):
        raise BadInput(f"{name}={seconds!r}: give at least 0.001 seconds, at most ten years")


def tags_of(tags: Any) -> tuple[str, ...]:
    """A single string is refused: it would be taken as one tag per character."""
    if isinstance(tags, str):
        raise BadInput(f"tags={tags!r}: give a list of tags, such as [{tags!r}]")
    return tuple(tags)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
