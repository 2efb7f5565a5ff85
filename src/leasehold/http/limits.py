"""How much one caller can ask for."""

from __future__ import annotations

from dataclasses import dataclass

from leasehold.model.payload import PAYLOAD_BYTES_LIMIT
from leasehold.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """A request that takes too long is ended; a stream that has lasted long begins anew."""

    request_seconds: float = 10.0
    ready_seconds: float = 2.0
    body_bytes: int = PAYLOAD_BYTES_LIMIT + 64 * 1024
    streams: int = 50
    stream_seconds: float = 3600.0
    stream_poll_seconds: float = 0.5
    stream_silent_seconds: float = 15.0


def limits_of(settings: Settings) -> Limits:
    return Limits(
        request_seconds=settings["http.request_timeout_seconds"],
        streams=settings["http.stream_count"],
    )
