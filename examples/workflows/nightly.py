"""A nightly import: a schedule starts a workflow, which loads the orders of all shops at once.

    freehold migrate --app nightly:app
    freehold worker --app nightly:app
    freehold schedules run nightly --app nightly:app  # now, without waiting for the night
    freehold flows --app nightly:app

The key of the workflow is its day: a day is never imported twice at the same time, also if a
person starts it again. Kill workers with SIGKILL wherever you like and start others: shops that
were loaded are not loaded again. With FREEHOLD_URL the jobs are in PostgreSQL, otherwise in
nightly.db.
"""

import asyncio
import os
from datetime import timedelta
from typing import Any

from freehold import Context, Freehold, Retry
from freehold.workflows import Workflow

app = Freehold(os.environ.get("FREEHOLD_URL") or "nightly.db")
#: How long the largest shop takes.
LOAD_SECONDS = float(os.environ.get("LOAD_SECONDS") or 1)
SHOPS = ["berlin", "lyon", "porto"]


@app.task
async def prepare(day: str) -> None:
    """In the place of an empty table for the day."""
    print(f"prepare {day}", flush=True)


@app.task(retry=Retry(max_attempts=5, base_seconds=1))
async def load(file: str) -> None:
    """In the place of a load that replaces the rows of its shop and day, so that it can be
    repeated."""
    print(f"load {file}", flush=True)
    if file.endswith("/berlin"):
        await asyncio.sleep(LOAD_SECONDS)


@app.task
async def report(day: str) -> str:
    print(f"report {day}", flush=True)
    return f"{len(SHOPS)} shops on {day}"


def start_import(day: str, connection: Any = None) -> Workflow:
    with app.workflow("import", key=day, connection=connection) as flow:
        ready = flow.add(prepare, day)
        shops = flow.map(load, [f"{day}/{shop}" for shop in SHOPS], after=ready)
        flow.add(report, day, after=shops)
    return flow


@app.cron("0 2 * * *", zone="UTC", name="nightly")
def nightly(ctx: Context) -> None:
    """Imports the day before its tick. The workflow and the end of this job are one transaction:
    a tick starts one import, whatever dies."""
    assert ctx.tick is not None
    with ctx.transaction() as connection:
        start_import(str((ctx.tick.at - timedelta(days=1)).date()), connection)
