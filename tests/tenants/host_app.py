"""Tasks of many tenants. Their handlers record what they do in a file."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from typing import Any

from freehold import Freehold, Retry
from freehold.worker.execution.context import Context
from tests.worker import lifeline

RECORD_VARIABLE = "FREEHOLD_TEST_RECORD"

lifeline.hold()

app = Freehold()
#: The worker passes the context to every handler; callers, and their type checker, need none.
GIVEN: Any = None


def note(ctx: Context, tenant: str, what: str) -> None:
    """Append one line in a single write, so that other processes or a kill cannot cut it."""
    line = {
        "tenant": tenant,
        "job": ctx.job.job_id,
        "token": ctx.lease.token,
        "what": what,
        "pid": os.getpid(),
        "at": time.monotonic(),
    }
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    file = os.open(os.environ[RECORD_VARIABLE], flags, 0o600)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)


@app.task(retry=Retry(max_attempts=3, base_seconds=0.1))
async def job(tenant: str, seconds: float = 0.0, *, ctx: Context = GIVEN) -> None:
    note(ctx, tenant, "start")
    await asyncio.sleep(seconds)
    note(ctx, tenant, "end")


@app.task(retry=Retry(max_attempts=3, base_seconds=0.1))
def threaded(tenant: str, *, ctx: Context = GIVEN) -> None:
    note(ctx, tenant, "start")
    note(ctx, tenant, "end")


@app.task
async def record_tenant(ctx: Context) -> None:
    note(ctx, str(ctx.tenant), "start")


@app.task(isolation="process")
def record_tenant_in_child(ctx: Context) -> None:
    note(ctx, str(ctx.tenant), "start")


@app.task
def logs() -> None:
    logging.getLogger("shop").warning("hello")
