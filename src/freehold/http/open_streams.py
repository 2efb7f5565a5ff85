"""Counts the open event streams and waits of one API and refuses more than the limit.

Streams last up to an hour, so that one caller could use up all of them. With several tokens each
has a share. Streams of tenants leave room for callers of all tenants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from freehold.http.problems import ApiError
from freehold.http_auth import Caller
from freehold.model.plural import count

#: The smallest share of a token.
_SHARE = 4


class OpenStreams:
    def __init__(self, limit: int, token_count: int) -> None:
        self._limit = limit
        self._share = max(_SHARE, limit // 4) if token_count > 1 else limit
        #: Only for callers of all tenants. A limit of 1 leaves nothing to divide.
        self._reserved = min(limit - 1, max(1, limit // 4))
        self._by_token: Counter[int] = Counter()
        self._of_tenants = 0

    @property
    def count(self) -> int:
        return self._by_token.total()

    @contextmanager
    def counted(self, caller: Caller) -> Iterator[None]:
        """Raises if there is no room for a stream of this caller. There is no await between the
        check and the count, so that requests at the same time cannot exceed the limit."""
        self._check(caller)
        self._by_token[caller.token] += 1
        self._of_tenants += caller.tenant is not None
        try:
            yield
        finally:
            self._by_token[caller.token] -= 1
            self._of_tenants -= caller.tenant is not None

    def _check(self, caller: Caller) -> None:
        """A message contains no number of other callers' streams: they may be of other tenants."""
        if self.count >= self._limit:
            raise _refusal(f"the limit of {count(self._limit, 'event stream')} is reached")
        if self._by_token[caller.token] >= self._share:
            share = count(self._share, "event stream")
            raise _refusal(f"this token has reached its share of {share}")
        if caller.tenant is not None and self._of_tenants >= self._limit - self._reserved:
            raise _refusal("the limit of event streams for tenants is reached")


def _refusal(why: str) -> ApiError:
    detail = f"{why} (see http.stream_count): try again later"
    return ApiError(503, "Too many streams", detail, {"Retry-After": "5"})
