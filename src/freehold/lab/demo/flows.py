"""Flows of the living demo: nightly imports, one of which waits for a visitor, and mailings."""

from __future__ import annotations

import asyncio
from typing import Any

from freehold.app import Freehold
from freehold.lab.demo.load import MAIL, REPORTS
from freehold.lab.demo.tasks import PREFIX

#: Pages of an import, and mails of a batch.
_PAGES = 12
_MAILS = 30


def define_import(app: Freehold) -> None:
    """The tasks of a workflow: small jobs that take a moment each."""

    @app.task(name=f"{PREFIX}extract", queue=REPORTS)
    async def extract(night: int) -> int:
        """How many pages there are."""
        await asyncio.sleep(1.5)
        return _PAGES

    @app.task(name=f"{PREFIX}clean", queue=REPORTS)
    async def clean(pages: int) -> int:
        await asyncio.sleep(2.0)
        return pages

    @app.task(name=f"{PREFIX}load", queue=REPORTS)
    async def load(page: int) -> int:
        await asyncio.sleep(0.5 + page % 4)
        return page

    @app.task(name=f"{PREFIX}publish", queue=REPORTS)
    async def publish(pages: int) -> str:
        await asyncio.sleep(0.8)
        return f"{pages} pages are published"


async def start_import(app: Freehold, night: int, *, breaks: bool = False) -> None:
    """A workflow. With ``breaks`` its check fails, so that its last node waits for a visitor."""

    def task(name: str) -> Any:
        return app.tasks.get(PREFIX + name)

    async with app.workflow("nightly import", key=f"night-{night}") as flow:
        pages = flow.add(task("extract"), night)
        cleaned = flow.add(task("clean"), pages.result)
        loaded = flow.map(task("load"), range(_PAGES), after=cleaned)
        kind = "broken" if breaks else "quick"
        check = flow.add(task(kind).using(queue=REPORTS), night, name="check", after=cleaned)
        flow.add(task("publish"), pages.result, after=[loaded, check], on_failure="hold")


async def start_mailing(app: Freehold, number: int) -> None:
    """A batch, and a job that follows it."""
    mail = app.tasks.get(f"{PREFIX}steady").using(queue=MAIL, tags=("mailing",))
    report = app.tasks.get(f"{PREFIX}quick").using(queue=REPORTS)
    mails = [mail.prepare(number * 100 + each) for each in range(_MAILS)]
    await app.abatch(mails, name="mailing", on_end=report.prepare(number))
