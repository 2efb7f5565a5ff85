"""The job of each log line of a handler, for logging and for structlog."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import pytest
import structlog

from freehold import Freehold
from freehold.logs import AttemptFilter, add_attempt
from freehold.testing import Harness

pytestmark = pytest.mark.requirement("N20")
request_id: ContextVar[str] = ContextVar("request_id")
OF_JOB = {"job": 1, "task": "task", "attempt": 1, "queue": "bills", "request_id": "r-7"}


@pytest.fixture
def app() -> Iterator[Freehold]:
    app = Freehold("sqlite://:memory:")
    app.carry(request_id)
    token = request_id.set("r-7")
    yield app
    request_id.reset(token)


def run(app: Freehold, handler: Any) -> None:
    task = app.task(name="task", queue="bills")(handler)
    with Harness(app) as queue:
        task.enqueue()
        assert queue.run(raise_errors=True).succeeded == 1


def test_a_format_of_logging_names_the_job_and_a_dash_elsewhere(app: Freehold) -> None:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(job)s %(task)s %(attempt)s %(queue)s %(message)s"))
    handler.addFilter(AttemptFilter())
    shop = logging.getLogger("shop.test_logs")
    shop.addHandler(handler)
    try:

        async def task() -> None:
            shop.warning("in the coroutine")
            await asyncio.to_thread(shop.warning, "in a thread of it")

        run(app, task)
        shop.warning("outside")
        shop.warning("its own", extra={"job": "mine"})
    finally:
        shop.removeHandler(handler)
    assert out.getvalue().splitlines() == [
        "1 task 1 bills in the coroutine",
        "1 task 1 bills in a thread of it",
        "- - - - outside",
        "mine - - - its own",
    ]


def test_records_of_logging_have_the_carried_ids(
    app: Freehold, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.handler.addFilter(attempts := AttemptFilter())
    try:
        run(app, lambda: logging.getLogger("shop").warning("hello"))
    finally:
        caplog.handler.removeFilter(attempts)
    (record,) = [each for each in caplog.records if each.name == "shop"]
    assert {name: getattr(record, name) for name in OF_JOB} == OF_JOB


def test_events_of_structlog_have_the_fields_and_keep_their_own(app: Freehold) -> None:
    events: list[Any] = []

    def keep(_logger: Any, _method: str, event: Any) -> Any:
        events.append(dict(event))
        raise structlog.DropEvent

    log = structlog.wrap_logger(None, processors=[add_attempt, keep])

    def task() -> None:
        log.info("hello")
        log.info("other", job="mine")

    run(app, task)
    log.info("outside")
    assert events == [
        {"event": "hello", **OF_JOB},
        {"event": "other", **OF_JOB, "job": "mine"},
        {"event": "outside"},
    ]
