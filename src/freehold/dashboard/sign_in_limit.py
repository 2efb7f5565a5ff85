"""Limits sign-ins that fail: a token is long, but attempts must not cost anything either. Codes of
printed addresses, which logs contain, are accepted once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from freehold.clock import monotonic
from freehold.http.problems import ApiError

TRIES_PER_MINUTE = 10
#: Addresses that are remembered. Beyond it the oldest is forgotten, so that memory is bounded.
_ADDRESSES = 10_000
#: Codes that are remembered. Each start of the service makes one, which is valid for minutes.
_CODES = 1_000


class SignInLimit:
    def __init__(self, now: Callable[[], float] = monotonic) -> None:
        self._now = now
        self._failed: OrderedDict[str, list[float]] = OrderedDict()

    def check(self, address: str) -> None:
        """Raises after too many failures from this address within a minute."""
        since = self._now() - 60.0
        recent = [at for at in self._failed.get(address, ()) if at > since]
        if len(recent) >= TRIES_PER_MINUTE:
            seconds = max(1, int(recent[0] - since) + 1)
            raise ApiError(
                429,
                "Too many requests",
                f"too many sign-ins have failed: try again in {seconds} s",
                {"Retry-After": str(seconds)},
            )

    def add_failure(self, address: str) -> None:
        since = self._now() - 60.0
        recent = [at for at in self._failed.pop(address, ()) if at > since]
        self._failed[address] = [*recent, self._now()][-TRIES_PER_MINUTE:]
        if len(self._failed) > _ADDRESSES:
            self._failed.popitem(last=False)


class UsedCodes:
    """Of this process: a code is printed by the process that accepts it."""

    def __init__(self) -> None:
        self._codes: OrderedDict[str, None] = OrderedDict()

    def add(self, code: str) -> bool:
        """False: it was used before."""
        if code in self._codes:
            return False
        self._codes[code] = None
        if len(self._codes) > _CODES:
            self._codes.popitem(last=False)
        return True
