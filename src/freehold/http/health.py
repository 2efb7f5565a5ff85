"""Whether this process lives, whether it can work, and its numbers for Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime

import msgspec
from starlette.responses import Response

from freehold.errors import StoreError, StoreUnavailable
from freehold.http.request import ApiRequest
from freehold.http.routes import Routes
from freehold.http_auth import Role
from freehold.prometheus import CONTENT_TYPE, Metric, Sample, metrics_text, process_metrics
from freehold.store.types import JobCounts, QueueInfo

routes = Routes()
TEXT = "text/plain"


class HealthBody(msgspec.Struct, frozen=True):
    status: str


@routes.get("/livez", Role.ANYONE, answers={200: HealthBody})
async def livez(asked: ApiRequest) -> HealthBody:
    """This process lives. The database is not asked."""
    return HealthBody("alive")


@routes.get("/readyz", Role.ANYONE, answers={200: HealthBody})
async def readyz(asked: ApiRequest) -> HealthBody:
    """The database answers, and has the schema."""
    seconds = asked.service.limits.ready_seconds
    try:
        async with asyncio.timeout(seconds):
            await asked.operate.now()
    except TimeoutError:
        raise StoreUnavailable(f"the database did not answer within {seconds:g} s") from None
    except StoreError as error:
        # Anyone may ask: where the database is and what is wrong with it is not theirs to know.
        raise StoreUnavailable(f"not ready: {type(error).__name__}") from None
    return HealthBody("ready")


@routes.get("/metrics", Role.VIEWER, answers={200: str}, media=TEXT)
async def metrics(asked: ApiRequest) -> Response:
    """Queues, live jobs and this process in the text format of Prometheus."""
    found = [*await _of_the_store(asked)]
    if asked.service.telemetry is not None and asked.app is asked.service.app:
        found += process_metrics(asked.service.telemetry)
    return Response(metrics_text(found), media_type=CONTENT_TYPE)


async def _of_the_store(asked: ApiRequest) -> list[Metric]:
    """What the process itself has counted is told also while the store is away."""
    operate, up = asked.operate, "whether the store answers"
    try:
        async with asyncio.timeout(asked.service.limits.ready_seconds):
            now, queues, counts = (
                await operate.now(),
                await operate.queues(),
                await operate.counts(),
            )
    except (StoreError, TimeoutError):
        return [Metric("store_up", "gauge", up, [Sample(0)])]
    alive = Metric("store_up", "gauge", up, [Sample(1)])
    return [alive, *_queue_metrics(queues, now), _job_metric(counts)]


def _queue_metrics(queues: list[QueueInfo], now: datetime) -> Iterator[Metric]:
    def gauge(name: str, help: str, values: list[float]) -> Metric:
        labels = [(("queue", queue.name),) for queue in queues]
        samples = [Sample(v, label) for v, label in zip(values, labels, strict=True)]
        return Metric(name, "gauge", help, samples)

    yield gauge("queue_ready", "jobs that can be claimed, up to 10000", [q.ready for q in queues])
    yield gauge("queue_leased", "jobs in workers' hands, up to 10000", [q.leased for q in queues])
    yield gauge(
        "queue_oldest_ready_seconds",
        "how long the job that is claimed next has been ready; 0: there is none",
        [_age(queue, now) for queue in queues],
    )
    yield gauge("queue_paused", "1: nothing of it is claimed", [int(q.paused) for q in queues])


def _age(queue: QueueInfo, now: datetime) -> float:
    if queue.oldest_ready_at is None:
        return 0.0
    return max(0.0, (now - queue.oldest_ready_at).total_seconds())


def _job_metric(counts: JobCounts) -> Metric:
    samples = [
        Sample(getattr(counts, name), (("waits", name),)) for name in counts.__struct_fields__
    ]
    return Metric("jobs", "gauge", "live jobs by what they wait for, up to 10000 each", samples)
