"""What Sentry receives, read from the transport of the real SDK."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any

import pytest
import sentry_sdk
from sentry_sdk.envelope import Envelope
from sentry_sdk.integrations.logging import LoggingIntegration

from freehold import Cancel, Context, Every, Freehold, Retry, Secret, Snooze
from freehold.contrib.sentry import Sentry, instrument
from freehold.store.types import ClaimRequest, QueueDemand
from freehold.testing import Harness
from freehold.worker.execution.handler_store import NoStore
from freehold.worker.held_leases import HeldLease

pytestmark = pytest.mark.requirement("N20")
ONCE = Retry(max_attempts=1)
START = datetime(2026, 1, 5, 12, tzinfo=UTC)


class Transport(sentry_sdk.Transport):
    """Keeps what would be sent."""

    def __init__(self) -> None:
        super().__init__()
        self.received: list[tuple[str, dict[str, Any]]] = []

    def capture_envelope(self, envelope: Envelope) -> None:
        for item in envelope.items:
            payload = item.payload.json
            assert isinstance(payload, dict)
            self.received.append((item.type or "", payload))

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [payload for received, payload in self.received if received == kind]

    @property
    def errors(self) -> list[tuple[str, str]]:
        """Type and text of each reported exception."""
        values = [event["exception"]["values"][-1] for event in self.of("event")]
        return [(value["type"], value["value"]) for value in values]


@pytest.fixture
def transport() -> Iterator[Transport]:
    transport = Transport()
    sentry_sdk.init(
        dsn="https://key@sentry.invalid/1",
        transport=transport,
        traces_sample_rate=1.0,
        default_integrations=False,
        integrations=[LoggingIntegration()],
    )
    yield transport
    sentry_sdk.get_client().close()
    sentry_sdk.get_global_scope().set_client(None)


@pytest.fixture
def app(transport: Transport) -> Freehold:
    app = Freehold("sqlite://:memory:")
    for _ in range(2):  # the second call takes the place of the first
        instrument(app)
    return app


def test_a_job_that_fails_for_good_after_two_retries_is_one_event(
    app: Freehold, transport: Transport
) -> None:
    @app.task(name="bill", queue="bills", retry=Retry(max_attempts=3))
    def bill(ctx: Context) -> None:
        sentry_sdk.set_tag("customer", "c7")
        raise ConnectionError(f"attempt {ctx.attempt}")

    with Harness(app) as queue:
        bill.enqueue()
        report = queue.run()
    assert (report.failed, report.attempts) == (1, 3)
    (event,) = transport.of("event")
    assert transport.errors == [("ConnectionError", "attempt 3")]
    frames = event["exception"]["values"][-1]["stacktrace"]["frames"]
    assert frames[-1]["function"] == "bill"
    assert event["transaction"] == "bill"
    assert event["tags"] == {
        "customer": "c7",
        "freehold.job": "1",
        "freehold.task": "bill",
        "freehold.queue": "bills",
        "freehold.attempt": "3",
    }
    attempts = transport.of("transaction")
    assert event["contexts"]["trace"]["trace_id"] == attempts[-1]["contexts"]["trace"]["trace_id"]
    assert [
        each["contexts"]["trace"]["data"]["messaging.message.retry.count"] for each in attempts
    ] == [0, 1, 2]
    assert len({each["contexts"]["trace"]["trace_id"] for each in attempts}) == 3


def test_a_lost_worker_is_one_event_and_its_retry_none(app: Freehold, transport: Transport) -> None:
    @app.task(name="bill")
    async def bill() -> None: ...

    with Harness(app) as queue:
        bill.enqueue()
        demands = (QueueDemand("default", 1),)
        queue._client.store.claim(ClaimRequest(owner="lost", lease_seconds=30, demands=demands))
        queue.advance(31)
        assert queue.run(seconds=3600).succeeded == 1
    assert transport.errors == [("lost_lease", "its worker was lost")]


def test_a_child_process_keeps_no_exceptions(app: Freehold, transport: Transport) -> None:
    """Its parent sees the ends of attempts, and reports them from what is stored."""
    task = app.task(name="task")(print)
    sentry = Sentry(app, monitor_schedules=False)
    with Harness(app) as queue:
        task.enqueue()
        request = ClaimRequest(owner="w", lease_seconds=30, demands=(QueueDemand("default", 1),))
        (attempt,) = queue._client.store.claim(request)
        lease = HeldLease(attempt, valid_until=float("inf"))
        no_log: Any = None
        ctx: Context[Any] = Context(lease, lambda: 0.0, no_log, NoStore(), None)
        with pytest.raises(ValueError, match="x"), sentry.attempt(ctx):
            raise ValueError("x")
    assert not sentry._failures


def test_a_success_a_snooze_and_a_cancellation_are_no_events(
    app: Freehold, transport: Transport
) -> None:
    @app.task(name="ends")
    async def ends(how: str) -> None:
        if how == "snooze":
            raise Snooze(1e6)
        if how == "cancel":
            raise Cancel("not needed")

    with Harness(app) as queue:
        for how in ("succeed", "snooze", "cancel"):
            ends.enqueue(how)
        queue.run()
    assert transport.of("event") == []
    assert len(transport.of("transaction")) == 3


def test_a_timeout_is_reported_from_what_is_stored(app: Freehold, transport: Transport) -> None:
    @app.task(name="hangs", timeout=5, retry=ONCE)
    async def hangs() -> None:
        await asyncio.Event().wait()

    with Harness(app) as queue:
        hangs.enqueue()
        queue.run()
    assert transport.errors == [("Timeout", "stopped after its timeout of 5 s")]


def test_no_event_contains_a_secret_argument(app: Freehold, transport: Transport) -> None:
    @app.task(name="login", retry=ONCE)
    def login(password: Annotated[str, Secret]) -> None:
        raise ValueError(f"wrong: {password}")

    with Harness(app) as queue:
        login.enqueue("hunter2")
        queue.run()
    assert [kind for kind, _ in transport.errors] == ["builtins.ValueError"]
    assert "hunter2" not in repr(transport.received)


def test_freeholds_own_log_lines_make_no_events_and_those_of_the_app_do(
    app: Freehold, transport: Transport
) -> None:
    logging.getLogger("freehold").error("job 1 has failed")
    assert transport.of("event") == []
    logging.getLogger("shop").error("out of stock")
    assert len(transport.of("event")) == 1


def test_an_enqueue_is_a_span_whose_trace_the_first_attempt_continues(
    app: Freehold, transport: Transport
) -> None:
    task = app.task(name="task")(print)
    with Harness(app) as queue:
        with sentry_sdk.start_transaction(name="request"):
            task.enqueue()
        queue.run()
    request, attempt = transport.of("transaction")
    (span,) = request["spans"]
    assert (span["op"], span["data"]["messaging.message.id"]) == ("queue.publish", "1")
    trace = attempt["contexts"]["trace"]
    assert (trace["op"], trace["parent_span_id"]) == ("queue.process", span["span_id"])
    assert trace["trace_id"] == request["contexts"]["trace"]["trace_id"]


def test_a_failed_enqueue_ends_its_span(app: Freehold, transport: Transport) -> None:
    task = app.task(name="task")(print)
    app.migrate()
    with (
        sentry_sdk.start_transaction(name="request"),
        pytest.raises(Exception, match="connection"),
    ):
        task.using(connection=object()).enqueue()
    app.close()
    (span,) = transport.of("transaction")[0]["spans"]
    assert span["status"] == "internal_error"


@pytest.mark.requirement("N20")
def test_jobs_of_schedules_check_in_at_their_first_attempt_and_at_their_end(
    app: Freehold, transport: Transport
) -> None:
    @app.cron("0 * * * *", zone="Europe/Berlin", name="shop.hourly", retry=Retry(max_attempts=2))
    def hourly(ctx: Context) -> None:
        if ctx.attempt == 1:
            raise ConnectionError

    @app.task(name="shop.often", retry=ONCE)
    def often() -> None:
        raise ConnectionError

    app.schedule("often", Every(minutes=40), often.prepare())
    with Harness(app, start=START) as queue:
        often.enqueue()  # not of the schedule
        queue.run(seconds=3700)
    found = [
        (each["monitor_slug"], each["status"], each["check_in_id"])
        for each in transport.of("check_in")
    ]
    often_id, hourly_id = found[0][2], found[2][2]
    assert found == [
        ("often", "in_progress", often_id),
        ("often", "error", often_id),
        ("shop-hourly", "in_progress", hourly_id),
        ("shop-hourly", "ok", hourly_id),
    ]
    configs = {each["monitor_slug"]: each["monitor_config"] for each in transport.of("check_in")}
    assert configs["shop-hourly"] == {
        "schedule": {"type": "crontab", "value": "0 * * * *"},
        "timezone": "Europe/Berlin",
    }
    assert configs["often"]["schedule"] == {"type": "interval", "value": 40, "unit": "minute"}
