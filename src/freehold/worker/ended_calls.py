"""Calls the method `ended` of extensions, one attempt after another, beside the worker's own work.

A slow extension holds up no job. If it is too slow for good, calls are dropped, with a warning.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections import deque
from functools import partial

from freehold.extensions import EndedAttempt, Extension, Extensions
from freehold.model.job import Attempt
from freehold.model.outcome import NEVER_STARTED, Decision, Outcome
from freehold.model.plural import count
from freehold.rare_warning import RareWarning
from freehold.telemetry import fields, log
from freehold.worker.hook_thread import HookThread

UNCALLED_LIMIT = 10_000
#: So long a worker that ends waits for calls.
FLUSH_SECONDS = 30.0
_dropped = RareWarning("extensions are too slow: the end of job %d and others are not passed on")


class EndedCalls:
    """Belongs to an event loop."""

    def __init__(self, extensions: Extensions) -> None:
        #: Those that want to be called: none in most apps.
        self.extensions = extensions.endings
        self._uncalled: deque[EndedAttempt] = deque()
        self._calling: asyncio.Task[None] | None = None
        self._thread = HookThread()

    def add(self, attempt: Attempt, outcome: Outcome, decision: Decision) -> None:
        if not self.extensions or outcome.kind in NEVER_STARTED:
            return
        if len(self._uncalled) >= UNCALLED_LIMIT:
            _dropped.log(attempt.job_id)
            return
        retry_seconds = decision.delay_seconds
        ended = EndedAttempt(attempt, outcome, decision.state, retry_seconds, decision.reason)
        self._uncalled.append(ended)
        if self._calling is None or self._calling.done():
            self._calling = asyncio.create_task(self._call_all(), name="calls of extensions")

    async def flushed(self) -> None:
        """Waits until every call has ended, but not for long: the outcomes are stored already."""
        if self._calling is None:
            return
        await asyncio.wait((self._calling,), timeout=FLUSH_SECONDS)
        if self._calling.cancel():
            text = "extensions are too slow: %s of attempts not passed on; the outcomes are stored"
            log.error(text, count(len(self._uncalled) + 1, "end"))
        self._thread.shutdown()

    async def _call_all(self) -> None:
        while self._uncalled:
            ended = self._uncalled.popleft()
            for extension in self.extensions:
                await self._call(extension, ended)

    async def _call(self, extension: Extension, ended: EndedAttempt) -> None:
        try:
            if inspect.iscoroutinefunction(extension.ended):
                await extension.ended(ended)
            else:
                call = partial(contextvars.copy_context().run, extension.ended, ended)
                await asyncio.get_running_loop().run_in_executor(self._thread, call)
        except Exception:
            job = ended.job
            log.exception(
                "%s.ended failed for job %d; the job is not changed",
                type(extension).__name__,
                job.job_id,
                extra=fields(job=job.job_id, task=job.task, attempt=job.number),
            )
