"""The tasks: each does what its plan says, and writes down that it did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from leasehold import Fail, Leasehold, Retry, RetryLater, Snooze
from leasehold.errors import OutcomeUnknown
from leasehold.model.ending import Ending
from leasehold.worker.context import Context
from tests.chaos.pen import Pen

STEP_SECONDS = 0.2
#: One attempt of a job: how long it takes, and how it ends.
Run = tuple[float, str]


class Trouble(Exception):
    """An error that a retry may cure."""


class Hopeless(Exception):
    """An error that no retry will cure."""


class Tasks:
    """Registered at an app. Only workers have a pen: producers never run anything."""

    def __init__(self, app: Leasehold, healed: Path, pen: Pen | None = None) -> None:
        self._healed = healed
        self._pen = pen
        self._snoozed: set[int] = set()
        retry = Retry(base_seconds=0.2, cap_seconds=2.0, give_up_on=(Hopeless,))
        self.tasks = {
            "plain": app.task(name="plain", retry=retry)(self._handler()),
            "strict": app.task(name="strict", retry=retry, on_lease_expired="fail")(
                self._handler()
            ),
            "kept": app.task(name="kept", retry=retry, on_cancel="pause", on_drain="pause")(
                self._handler()
            ),
            "skipping": app.task(
                name="skipping", retry=retry, on_cancel="cancel", on_drain="requeue",
                lane_on_failure="skip",
            )(self._handler()),
            "fenced": app.task(name="fenced", retry=retry)(self._handler(fenced=True)),
        }  # fmt: skip

    def _handler(self, *, fenced: bool = False) -> Callable[..., Any]:
        async def handler(ctx: Context, call: str, runs: list[Run]) -> Any:
            return await self._attempt(ctx, runs, fenced)

        return handler

    async def _attempt(self, ctx: Context, runs: list[Run], fenced: bool) -> Any:
        assert self._pen is not None
        job, note = ctx.job, self._pen.note
        note(
            "started", job.job_id, job.token, job.number, target=job.target, queue=job.queue,
            owner=job.owner, timeout=job.timeout_seconds, fenced=fenced,
        )  # fmt: skip
        seconds, how = self._run(job.job_id, job.number, runs)
        try:
            result = await self._work(ctx, seconds, how, fenced)
        except asyncio.CancelledError:
            note("ended", job.job_id, job.token, how="stopped", why=str(ctx.stop_reason))
            raise
        except BaseException as error:
            delay = getattr(error, "delay_seconds", None)
            note("ended", job.job_id, job.token, how=_how(error), delay=delay)
            raise
        note("ended", job.job_id, job.token, how="returned")
        return result

    def _run(self, job_id: int, attempt: int, runs: list[Run]) -> Run:
        """Attempts beyond the plan succeed. A snooze is not counted, so it is taken once in each
        process."""
        if attempt > len(runs) or self._healed.exists():
            return 0.0, "return"
        seconds, how = runs[attempt - 1]
        if how == "snooze":
            if job_id in self._snoozed:
                return 0.0, "return"
            self._snoozed.add(job_id)
        return seconds, how

    async def _work(self, ctx: Context, seconds: float, how: str, fenced: bool) -> Any:
        assert self._pen is not None
        while seconds > 0:
            await asyncio.sleep(min(seconds, STEP_SECONDS))
            seconds -= STEP_SECONDS
            self._pen.note("step", ctx.job.job_id, ctx.job.token, held=ctx.lease.held)
        result = {"token": ctx.lease.token}
        if fenced and how == "return":
            async with ctx.transaction(result=result):
                await asyncio.sleep(0)
            return None
        _end(how)
        return result


def _end(how: str) -> None:
    match how:
        case "error":
            raise Trouble("as planned")
        case "give_up":
            raise Hopeless("as planned")
        case "fail":
            raise Fail("as planned")
        case "later":
            raise RetryLater(0.3, reason="as planned")
        case "snooze":
            raise Snooze(0.5)


def _how(error: BaseException) -> str:
    if isinstance(error, Ending):
        return type(error).__name__.lower()
    if isinstance(error, OutcomeUnknown):
        return "unknown"
    return "hopeless" if isinstance(error, Hopeless) else "error"
