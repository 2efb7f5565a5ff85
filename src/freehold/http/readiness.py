"""Whether the database is available, for /readyz, which needs no token.

Requests at the same time share one check, and its result is valid for a while: however many
requests there are, the database gets about one statement a second.
"""

from __future__ import annotations

import asyncio
import math

from freehold.clock import monotonic
from freehold.errors import StoreError, StoreUnavailable, TenantNotFound
from freehold.http.request_limits import RequestLimits
from freehold.operator import AsyncOperator


class Readiness:
    def __init__(self, limits: RequestLimits) -> None:
        self._limits = limits
        self._check: asyncio.Task[Exception | None] | None = None
        self._checked_at = -math.inf

    async def check(self, operator: AsyncOperator) -> Exception | None:
        """Returns None if the database is available, otherwise the error to raise."""
        check = self._check
        if check is None or self._is_over(check):
            check = self._check = asyncio.create_task(self._run(operator))
        # Shielded: the client of one request may disconnect while others wait.
        return await asyncio.shield(check)

    def _is_over(self, check: asyncio.Task[Exception | None]) -> bool:
        if check.get_loop() is not asyncio.get_running_loop() or check.cancelled():
            return True
        return check.done() and monotonic() - self._checked_at >= self._limits.ready_valid_seconds

    async def _run(self, operator: AsyncOperator) -> Exception | None:
        seconds = self._limits.ready_seconds
        try:
            async with asyncio.timeout(seconds):
                await operator.now()
        except TimeoutError:
            return StoreUnavailable(f"no result from the database within {seconds:g} s")
        except StoreError as error:
            # The error may contain the address of the database.
            return StoreUnavailable(f"not ready: {type(error).__name__}")
        except TenantNotFound as error:  # `dispatch` hides its text
            return error
        finally:
            self._checked_at = monotonic()
        return None
