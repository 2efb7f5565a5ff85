"""The log of writes and of denied requests: the caller, the request, and the peer's address.

Reads are not logged, and neither are bodies, which contain arguments of jobs. A denied request
needs no token, so that anyone could fill the disk: only the first ones of each minute are logged,
and all of them are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from starlette.requests import Request

from freehold.clock import monotonic
from freehold.http_auth import Caller
from freehold.model.plural import count
from freehold.telemetry import Telemetry, fields, log

DENIED_LINES_PER_MINUTE = 10
_PATH_CHARACTERS = 200


class AccessLog:
    def __init__(self, telemetry: Telemetry | None, now: Callable[[], float] = monotonic) -> None:
        self._telemetry = telemetry
        self._now = now
        self._minute_ends_at = now()
        self._denied = 0

    def add(self, request: Request, caller: Caller | None, status: int) -> None:
        """``caller``: None if it was not recognized."""
        if status in (401, 403):
            self._deny(request, caller, status)
        elif request.method == "POST":
            text, values = _described(request, caller, status)
            log.info("%s: %s", text, status, extra=values)

    def _deny(self, request: Request, caller: Caller | None, status: int) -> None:
        if self._telemetry is not None:
            self._telemetry.count("http_denied", label=str(status))
        if self._now() >= self._minute_ends_at:
            self._begin_minute()
        self._denied += 1
        if self._denied <= DENIED_LINES_PER_MINUTE:
            text, values = _described(request, caller, status)
            log.warning("denied (%s): %s", status, text, extra=values)

    def _begin_minute(self) -> None:
        more = self._denied - DENIED_LINES_PER_MINUTE
        if more > 0:
            log.warning("%s not logged", count(more, "more denied request"))
        self._minute_ends_at, self._denied = self._now() + 60.0, 0


def _described(
    request: Request, caller: Caller | None, status: int
) -> tuple[str, dict[str, object]]:
    path = quote(request.scope["path"][:_PATH_CHARACTERS], safe="/:@*", errors="replace")
    peer = request.client.host if request.client is not None else "an unknown address"
    by = "an unknown caller"
    if caller is not None:
        by = f"{caller.name} (token {caller.token})" if caller.token else caller.name
    values = fields(method=request.method, path=path, caller=by, peer=peer, status=status)
    return f"{request.method} {path} by {by} from {peer}", values
