"""How a worker works: its settings, as they stand in `config/default.toml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from freehold.errors import BadSettings
from freehold.http_auth import Token, tokens_of
from freehold.model.job import DEFAULT_QUEUE
from freehold.model.names import check_name
from freehold.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """How a worker works. `config/default.toml` has the same names and values."""

    queues: tuple[str, ...] = (DEFAULT_QUEUE,)
    concurrency: int = 10
    lease_seconds: float = 30.0
    poll_seconds: float = 0.25
    grace_seconds: float = 300.0
    request_poll_seconds: float = 2.0
    history_days: float = 30.0
    until_idle: bool = False
    #: Where its manager can be seen, and the seat that it was given: see `seats`.
    managed_in: Path | None = None
    seat: int | None = None
    #: Where /metrics and /livez of this process are served; no port: nowhere. 0: any free one.
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    tokens: tuple[Token, ...] = ()

    def __post_init__(self) -> None:
        queues: object = self.queues  # callers are not all checked by types
        if isinstance(queues, str):
            raise BadSettings(f"queues={queues!r}: give a list of names: [{queues!r}]")
        for queue in self.queues:
            check_name("queue", queue)
        if not self.queues:
            raise BadSettings("a worker needs at least one queue")
        if not 1 <= self.concurrency <= 10_000:
            raise BadSettings(f"concurrency={self.concurrency}: give 1 to 10000 slots")
        if self.metrics_port is not None and not 0 <= self.metrics_port <= 65535:
            raise BadSettings(f"metrics_port={self.metrics_port}: give 0 to 65535")
        for name, low in (
            ("lease_seconds", 0.5),
            ("poll_seconds", 0.001),
            ("grace_seconds", 0.0),
            ("request_poll_seconds", 0.01),
        ):
            if not low <= getattr(self, name) < 1e6:
                raise BadSettings(f"{name}={getattr(self, name)!r}: give at least {low:g} seconds")


def worker_settings(settings: Settings, **given: Any) -> WorkerSettings:
    """The settings in force, with what was given by hand over them."""
    fields: dict[str, Any] = {
        "queues": tuple(settings["workers.queues"]),
        "concurrency": settings["workers.concurrency"],
        "lease_seconds": float(settings["workers.lease_timeout_seconds"]),
        "poll_seconds": settings["workers.poll_interval_ms"] / 1000.0,
        "grace_seconds": float(settings["workers.shutdown_grace_seconds"]),
        "request_poll_seconds": float(settings["workers.request_poll_seconds"]),
        "history_days": float(settings["retention.history_days"]),
    }
    if given.get("metrics_port") is not None:
        # Whoever serves nothing need not have the tokens.
        fields["tokens"] = tokens_of(settings["http.tokens"])
    fields.update((name, value) for name, value in given.items() if value is not None)
    return WorkerSettings(**fields)
