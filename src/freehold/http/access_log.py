"""The log of writes, of denied requests, and of errors whose text the caller must not see.

Reads are not logged, and neither are bodies, which contain arguments of jobs. A denied request
needs no token, so that anyone could fill the disk: only the first ones of each minute are logged,
and all of them are counted. The same bound holds for errors.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from starlette.requests import Request

from freehold.clock import monotonic
from freehold.http_auth import Caller
from freehold.model.plural import count
from freehold.telemetry import Telemetry, fields, log

LINES_PER_MINUTE = 10
_PATH_CHARACTERS = 200


class AccessLog:
    def __init__(self, telemetry: Telemetry, now: Callable[[], float] = monotonic) -> None:
        self._telemetry = telemetry
        self._denied = _BoundedWarnings("denied request", now)
        self._hidden = _BoundedWarnings("error", now)

    def add(self, request: Request, caller: Caller | None, status: int) -> None:
        """``caller``: None if it was not recognized."""
        text, values = _described(request, caller, status)
        if status in (401, 403):
            self._telemetry.count("http_denied", label=str(status))
            self._denied.log(f"denied ({status}): {text}", values)
        elif request.method == "POST":
            log.info("%s: %s", text, status, extra=values)

    def add_hidden_error(self, request: Request, caller: Caller | None, error: Exception) -> None:
        """An error that a caller of one tenant gets without its text."""
        text, values = _described(request, caller, None)
        self._hidden.log(f"{text}: {type(error).__name__}: {error}", values)


class _BoundedWarnings:
    """Logs the first lines of each minute, and later how many were left out."""

    def __init__(self, what: str, now: Callable[[], float]) -> None:
        self._what = what
        self._now = now
        self._minute_ends_at = now()
        self._lines = 0

    def log(self, text: str, values: dict[str, object]) -> None:
        if self._now() >= self._minute_ends_at:
            left_out = self._lines - LINES_PER_MINUTE
            if left_out > 0:
                log.warning("%s not logged", count(left_out, f"more {self._what}"))
            self._minute_ends_at, self._lines = self._now() + 60.0, 0
        self._lines += 1
        if self._lines <= LINES_PER_MINUTE:
            log.warning("%s", text, extra=values)


def _described(
    request: Request, caller: Caller | None, status: int | None
) -> tuple[str, dict[str, object]]:
    path = quote(request.scope["path"][:_PATH_CHARACTERS], safe="/:@*", errors="replace")
    peer = request.client.host if request.client is not None else "an unknown address"
    by = "an unknown caller"
    if caller is not None:
        by = f"{caller.name} (token {caller.token})" if caller.token else caller.name
    values = fields(method=request.method, path=path, caller=by, peer=peer, status=status)
    return f"{request.method} {path} by {by} from {peer}", values
