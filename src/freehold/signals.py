"""Sending signals: the part of an app that does it, and the checks of its input."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from freehold.client import Client
from freehold.errors import BadInput
from freehold.model import payload
from freehold.model.names import check_key
from freehold.model.retry import WAIT_LIMIT_SECONDS
from freehold.model.signal import KEEP
from freehold.store.statements import Verb
from freehold.store.verbs.signals import send_signal


class SignalSender:
    """Sends signals through the client of an app."""

    @property
    def _client(self) -> Client:
        raise NotImplementedError

    def send_signal(
        self,
        name: str,
        value: Any = None,
        *,
        by: str | None = None,
        keep: float | timedelta = KEEP,
        connection: Any = None,
    ) -> bool:
        """Store a value for jobs that wait for a signal of this name, now or later.

        False: it was sent before, and keeps its first value. It is kept for ``keep``. With
        ``connection`` it is sent if and only if the caller's transaction commits.
        """
        return self._client.send_signal(_sending(name, value, by, keep), connection)

    async def asend_signal(
        self,
        name: str,
        value: Any = None,
        *,
        by: str | None = None,
        keep: float | timedelta = KEEP,
        connection: Any = None,
    ) -> bool:
        """The same for asyncio."""
        return await self._client.asend_signal(_sending(name, value, by, keep), connection)


def _sending(name: str, value: Any, by: str | None, keep: float | timedelta) -> Verb[bool]:
    """The verb of a call. Raises BadInput, and nothing is written."""
    check_key("the name of a signal", name)
    if by is not None:
        check_key("by", by)
    data = payload.encode(f"the value of signal {name!r}", value)
    seconds: object = keep.total_seconds() if isinstance(keep, timedelta) else keep
    if not isinstance(seconds, int | float) or not 0 < seconds <= WAIT_LIMIT_SECONDS:
        raise BadInput(f"keep={keep!r}: give seconds above 0, at most ten years")
    return send_signal(name, data, by, float(seconds))
