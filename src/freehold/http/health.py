"""Liveness, readiness, and metrics for Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TypeAlias

import msgspec
from starlette.responses import Response

from freehold.errors import StoreError
from freehold.http.request import ApiRequest
from freehold.http.routes import Routes
from freehold.http_auth import Role
from freehold.prometheus import CONTENT_TYPE, Metric, Sample, metrics_text, process_metrics
from freehold.store.types import DEPTH_BOUND, FlowLoad, JobCounts, QueueInfo

routes = Routes()
TEXT = "text/plain"
#: The most queues that have series of their own.
QUEUE_SERIES = 200
#: The label of all other queues together. No queue can have this name.
OTHER_QUEUES = "(others)"
Join: TypeAlias = Callable[[Iterable[float]], float]


class HealthBody(msgspec.Struct, frozen=True):
    status: str


@routes.get("/livez", Role.ANYONE, responses={200: HealthBody})
async def livez(request: ApiRequest) -> HealthBody:
    """Liveness of this process. It does not use the database."""
    return HealthBody("alive")


@routes.get("/readyz", Role.ANYONE, responses={200: HealthBody})
async def readyz(request: ApiRequest) -> HealthBody:
    """Readiness: the database is available and has the schema. A result is valid for a second."""
    error = await request.service.readiness.check(request.operator)
    if error is not None:
        raise error.with_traceback(None)
    return HealthBody("ready")


@routes.get("/metrics", Role.VIEWER, responses={200: str}, media=TEXT)
async def metrics(request: ApiRequest) -> Response:
    """Metrics of queues, live jobs and this process, in the text format of Prometheus."""
    found = [*await _store_metrics(request)]
    if request.app is request.service.app:
        found += process_metrics(request.service.telemetry)
    return Response(metrics_text(found), media_type=CONTENT_TYPE)


async def _store_metrics(request: ApiRequest) -> list[Metric]:
    """Never raises: the counters of the process are shown also while the store is unavailable."""
    operator, up = request.operator, "1: the store is available"
    try:
        async with asyncio.timeout(request.service.limits.ready_seconds):
            now, queues, counts, pause, flows = (
                await operator.now(),
                await operator.queues(DEPTH_BOUND),
                await operator.counts(),
                await operator.pause_of_all(),
                await operator.flow_load(),
            )
    except (StoreError, TimeoutError):
        return [Metric("store_up", "gauge", up, [Sample(0)])]
    alive = Metric("store_up", "gauge", up, [Sample(1)])
    paused = Metric(
        "all_queues_paused",
        "gauge",
        "1: all queues are paused together, or this tenant is",
        [Sample(int(pause is not None))],
    )
    queue_metrics = _queue_metrics(queues, now)
    return [alive, paused, *queue_metrics, _job_metric(counts), *_flow_metrics(flows)]


def _queue_metrics(queues: list[QueueInfo], now: datetime) -> Iterator[Metric]:
    """Each queue has its own series, up to a limit: a caller can name any number of queues. The
    smallest ones share a series, so that sums and maxima over all series stay right."""
    largest = sorted(
        queues, key=lambda q: (-q.ready - q.leased - q.not_ready, not q.paused, q.name)
    )
    shown, others = largest[:QUEUE_SERIES], largest[QUEUE_SERIES:]

    def gauge(
        name: str, help: str, value: Callable[[QueueInfo], float], join: Join = sum
    ) -> Metric:
        samples = [Sample(value(queue), (("queue", queue.name),)) for queue in shown]
        if others:
            samples.append(Sample(join(map(value, others)), (("queue", OTHER_QUEUES),)))
        return Metric(name, "gauge", help, samples)

    yield gauge("queue_ready", "jobs that can be claimed, up to 10000", lambda q: q.ready)
    yield gauge("queue_leased", "jobs leased by workers, up to 10000", lambda q: q.leased)
    yield gauge(
        "queue_not_ready",
        "live jobs that are neither ready nor leased, up to 10000",
        lambda queue: queue.not_ready,
    )
    yield gauge(
        "queue_oldest_ready_seconds",
        "how long the job that is claimed next has been ready; 0: there is none",
        lambda queue: _age(queue, now),
        max,
    )
    yield gauge(
        "queue_paused",
        "1: its jobs are not claimed; of (others): how many of them are paused",
        lambda queue: int(queue.paused),
    )


def _age(queue: QueueInfo, now: datetime) -> float:
    if queue.oldest_ready_at is None:
        return 0.0
    return max(0.0, (now - queue.oldest_ready_at).total_seconds())


def _job_metric(counts: JobCounts) -> Metric:
    samples = [
        Sample(getattr(counts, name), (("waits", name),)) for name in counts.__struct_fields__
    ]
    return Metric("jobs", "gauge", "live jobs by what they wait for, up to 10000 each", samples)


def _flow_metrics(load: FlowLoad) -> Iterator[Metric]:
    for name, help, value in (
        ("flows_open", "open batches, gathers and workflows, up to 10000", load.open),
        ("flows_due", "flows with something to act upon, up to 10000", load.due),
        ("flow_worklist", "ends of members that are not counted yet, up to 10000", load.ends),
    ):
        yield Metric(name, "gauge", help, [Sample(value)])
