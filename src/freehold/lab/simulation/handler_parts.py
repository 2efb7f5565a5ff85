"""The parts of a handler with steps: each runs through its context, and records what it saw."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from freehold.errors import NoResult, OutcomeUnknown
from freehold.lab.checker.check_flows import child_prefix
from freehold.lab.simulation.step_plans import Part
from freehold.model.handler_exceptions import AttemptEnded
from freehold.model.job import NewJob
from freehold.store.database import Database
from freehold.worker.execution.context import Context

#: What a part of a signal that was not sent in time gets.
TIMED_OUT = "timed out"


class CommitUnknown(OutcomeUnknown):
    """The outcome of the commit of a step is unknown. Its attempt must write nothing more."""


class HandlerParts:
    """``record`` is called with kind, job, token, info; ``prepare`` makes a job of a call."""

    def __init__(self, record: Callable[..., None], prepare: Callable[[str], NewJob]) -> None:
        self._record = record
        self._prepare = prepare
        self._calls = 0

    async def run(self, ctx: Context, part: Part) -> None:
        kind, name, _ = part
        try:
            value = await self._run(ctx, part)
        except AttemptEnded:
            self._record_part("suspended", ctx, name, waits=kind)
            raise
        self._record_part("got", ctx, name, value=value)

    async def _run(self, ctx: Context, part: Part) -> object:
        kind, name, seconds = part
        match kind:
            case "step":
                return await ctx.step(name, self._called, ctx, name, seconds)
            case "signal":
                return await self._signal(ctx, name, seconds)
            case "gather":
                return await self._gather(ctx, name, int(seconds))
            case "transaction":
                await self._transaction(ctx, name)
            case "sleep":
                await ctx.sleep(name, seconds)
        return None

    async def _transaction(self, ctx: Context, name: str) -> None:
        try:
            async with ctx.transaction(step=name) as connection:
                if connection:
                    self._record_part("called", ctx, name)
                    row = ctx.job.job_id, name, ctx.job.token
                    connection.execute("insert into ledger values (?, ?, ?)", row)
        except OutcomeUnknown as error:
            raise CommitUnknown(str(error)) from error

    async def _gather(self, ctx: Context, name: str, count: int) -> list[Any]:
        """The tokens of the children that succeeded, and the errors of the others."""
        prefix = child_prefix(ctx.job.job_id, name, ctx.tenant)
        calls = (f"{prefix}{number}" for number in range(count))
        found = await ctx.gather(name, [self._prepare(call) for call in calls], failed="return")
        return [type(each).__name__ if isinstance(each, NoResult) else each for each in found]

    async def _called(self, ctx: Context, name: str, seconds: float) -> list[int]:
        """The function of a step. No two calls return the same, and its owner is seen in it."""
        self._calls += 1
        value = [ctx.job.token, self._calls]
        self._record_part("called", ctx, name, value=value)
        await asyncio.sleep(seconds)
        return value

    async def _signal(self, ctx: Context, name: str, seconds: float) -> str:
        try:
            found: str = await ctx.wait_for_signal(name, str, timeout=seconds or None)
        except TimeoutError:
            return TIMED_OUT
        return found

    def _record_part(self, kind: str, ctx: Context, name: str, **info: object) -> None:
        self._record(kind, ctx.job.job_id, ctx.job.token, step=name, **info)


def create_ledger(database: Database) -> None:
    """The table of the handlers' own rows: one for each step that is a transaction."""
    transaction = database.transaction()
    transaction.begin().execute("create table ledger (job integer, step text, token integer)")
    transaction.commit()


def read_ledger(database: Database) -> list[tuple[int, str]]:
    """The job and the step of every row."""
    transaction = database.transaction()
    rows = transaction.begin().execute("select job, step from ledger order by 1, 2").fetchall()
    transaction.rollback()
    return rows  # type: ignore[no-any-return]
