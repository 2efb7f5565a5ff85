"""The settings of a worker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from dataclasses import fields as fields_of
from pathlib import Path
from typing import Any

from freehold.errors import BadSettings
from freehold.http_auth import Token, tokens_of
from freehold.model.job import LONGEST_LEASE_SECONDS
from freehold.model.limit import ALL_QUEUES
from freehold.model.names import check_name
from freehold.model.plural import count
from freehold.settings import Settings, load
from freehold.worker.execution.process_child import ChildSetup


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """The settings of one worker. `config/default.toml` has the same names and values."""

    #: ``*`` is every queue, also those that appear later.
    queues: tuple[str, ...] = (ALL_QUEUES,)
    concurrency: int = 10
    lease_timeout_seconds: float = 30.0
    poll_interval_ms: float = 250.0
    shutdown_grace_seconds: float = 300.0
    request_poll_seconds: float = 2.0
    misfit_seconds: float = 3600.0
    #: A child process is replaced after so many jobs; 0: never.
    child_max_jobs: int = 0
    history_days: float = 30.0
    audit_days: float = 365.0
    until_idle: bool = False
    #: False in a program that handles signals itself, as a web server does.
    handle_signals: bool = True
    #: The manager's folder, and the open file of this worker's slot: see `manager.process_slots`.
    managed_in: Path | None = None
    slot_file: int | None = None
    #: The address of /metrics and /livez of this process. Port 0 is any free one; None serves none.
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    tokens: tuple[Token, ...] = ()
    #: How child processes prepare themselves.
    child_setup: ChildSetup = field(default_factory=ChildSetup)

    def __post_init__(self) -> None:
        queues: object = self.queues  # callers are not all checked by types
        if isinstance(queues, str):
            raise BadSettings(f"queues={queues!r}: give a list of names: [{queues!r}]")
        for queue in self.queues:
            if queue != ALL_QUEUES:
                check_name("queue", queue)
        if not self.queues:
            raise BadSettings("a worker needs at least one queue")
        if not 1 <= self.concurrency <= 10_000:
            raise BadSettings(f"concurrency={self.concurrency}: give 1 to 10000 slots")
        if self.child_max_jobs < 0:
            raise BadSettings(f"child_max_jobs={self.child_max_jobs}: give 0 (never) or more jobs")
        if self.metrics_port is not None and not 0 <= self.metrics_port <= 65535:
            raise BadSettings(f"metrics_port={self.metrics_port}: give 0 to 65535")
        for name, low, high, unit in (
            ("lease_timeout_seconds", 0.5, LONGEST_LEASE_SECONDS, "seconds"),
            ("poll_interval_ms", 1.0, 1e9, "milliseconds"),
            ("shutdown_grace_seconds", 0.0, 1e6, "seconds"),
            ("request_poll_seconds", 0.01, 1e6, "seconds"),
            ("misfit_seconds", 0.0, 1e9, "seconds"),
        ):
            value = getattr(self, name)
            if not low <= value < high:
                raise BadSettings(f"{name}={value!r}: give at least {low:g} {unit}")

    @property
    def shown_queues(self) -> str:
        is_all = ALL_QUEUES in self.queues
        return "all queues" if is_all else f"queues {', '.join(self.queues)}"

    def unserved(self, queues: Iterable[str]) -> list[str]:
        """Those of the given queues that this worker does not serve."""
        return [] if ALL_QUEUES in self.queues else sorted(set(queues) - set(self.queues))

    def drain_text(self, running: int) -> str:
        """What a draining process waits for, and what another signal does."""
        if not running:
            return "drains: no job is running"
        jobs, them = count(running, "running job"), "it" if running == 1 else "them"
        return (
            f"drains: waiting up to {self.shutdown_grace_seconds:g} s for {jobs} to end; another "
            f"SIGTERM or Ctrl-C stops {them} at once"
        )


#: Arguments of `run_worker` that are no settings.
SELECTION = ("tenants", "without_tenants")


def worker_settings(settings: Settings, **given: Any) -> WorkerSettings:
    """The configured settings; a value of ``given`` replaces its setting unless it is None."""
    names = [each.name for each in fields_of(WorkerSettings)]
    if unknown := given.keys() - set(names):
        text = f"a worker has no setting {', '.join(sorted(unknown))}; it has {', '.join(names)}"
        raise BadSettings(text)
    fields: dict[str, Any] = {
        "queues": settings.workers.queues,
        "concurrency": settings.workers.concurrency,
        "lease_timeout_seconds": settings.workers.lease_timeout_seconds,
        "poll_interval_ms": settings.workers.poll_interval_ms,
        "shutdown_grace_seconds": settings.workers.shutdown_grace_seconds,
        "request_poll_seconds": settings.workers.request_poll_seconds,
        "misfit_seconds": settings.workers.misfit_seconds,
        "child_max_jobs": settings.workers.child_max_jobs,
        "history_days": settings.retention.history_days,
        "audit_days": settings.retention.audit_days,
    }
    if given.get("metrics_port") is not None and given.get("tokens") is None:
        # Only a worker that serves metrics needs the tokens to be present.
        fields["tokens"] = tokens_of(settings.http.tokens)
    fields.update((name, value) for name, value in given.items() if value is not None)
    return WorkerSettings(**fields)


def check_worker_settings(given: Mapping[str, Any]) -> None:
    """Raises for arguments of `run_worker` that it would refuse."""
    own = {name: value for name, value in given.items() if name not in SELECTION}
    worker_settings(load(), **own)
