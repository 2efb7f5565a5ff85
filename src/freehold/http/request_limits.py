"""Limits on one request."""

from __future__ import annotations

from dataclasses import dataclass

from freehold.model.payload import PAYLOAD_BYTES_LIMIT
from freehold.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """A request that takes too long is ended, and so is a stream after an hour; its client
    reconnects."""

    request_seconds: float = 10.0
    ready_seconds: float = 2.0
    #: For how long /readyz returns the same result, which anyone may request.
    ready_valid_seconds: float = 1.0
    body_bytes: int = PAYLOAD_BYTES_LIMIT + 64 * 1024
    streams: int = 50
    stream_seconds: float = 3600.0
    stream_poll_seconds: float = 0.5
    stream_silent_seconds: float = 15.0


def limits_of(settings: Settings) -> RequestLimits:
    return RequestLimits(
        request_seconds=settings.http.request_timeout_seconds,
        streams=settings.http.stream_count,
    )
