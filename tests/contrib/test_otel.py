"""Spans and metrics of jobs, made by the real SDK."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from opentelemetry import baggage, context, propagate
from opentelemetry.propagators.textmap import default_setter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from freehold import (
    BadSettings,
    Context,
    Extension,
    Freehold,
    NewJob,
    Refused,
    Retry,
    Secret,
    Snooze,
)
from freehold.client import Client
from freehold.clock import system_micros
from freehold.contrib.otel import FreeholdInstrumentor, instrument
from freehold.extensions import child_preparations, default_extensions
from freehold.store.open import open_memory
from freehold.store.types import ClaimRequest, QueueDemand
from freehold.testing import Harness
from tests.contrib import traced_app
from tests.contrib.recorded_spans import RecordedSpans

pytestmark = pytest.mark.requirement("N20")
GOLDEN = Path(__file__).with_name("otel_spans.json")


class Traced:
    def __init__(self, **options: Any) -> None:
        self.app = Freehold("sqlite://:memory:")
        self.recorded = RecordedSpans()
        self.reader = InMemoryMetricReader()
        instrument(
            self.app,
            tracer_provider=self.recorded.provider,
            meter_provider=MeterProvider([self.reader]),
            **options,
        )

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self.recorded.spans}

    def metrics(self) -> dict[str, list[tuple[dict[str, Any], Any]]]:
        """The points of each metric: their attributes, and their count or sum."""
        data = self.reader.get_metrics_data()
        assert data is not None
        found = data.resource_metrics[0].scope_metrics[0].metrics
        return {
            each.name: [
                (dict(point.attributes or {}), getattr(point, "count", getattr(point, "value", 0)))
                for point in each.data.data_points
            ]
            for each in found
        }


@pytest.fixture
def traced() -> Traced:
    return Traced()


def test_the_spans_of_a_job_with_two_retries_and_a_lost_worker(traced: Traced) -> None:
    """Compared with a file. `OTEL_GOLDEN=write` writes it, to be read before it is committed."""
    app = traced.app

    @app.task(name="shop.bill", queue="bills", retry=Retry(max_attempts=5))
    async def bill(ctx: Context) -> int:
        if ctx.attempt < 4:
            raise ConnectionError(f"attempt {ctx.attempt}")
        return ctx.attempt

    with Harness(app, lease_timeout_seconds=30) as queue:
        job = bill.enqueue()
        store, demands = queue._client.store, (QueueDemand("bills", 1),)
        store.claim(ClaimRequest(owner="lost", lease_seconds=30, demands=demands))
        queue.advance(31)
        assert queue.run(seconds=3600).succeeded == 1
        assert job.result() == 4
    spans = traced.recorded.documents()
    if os.environ.get("OTEL_GOLDEN") == "write":
        GOLDEN.write_text(json.dumps(spans, indent=2) + "\n")
    assert spans == json.loads(GOLDEN.read_text())


def test_an_enqueue_is_in_the_trace_of_its_caller_and_an_attempt_in_one_of_its_own(
    traced: Traced,
) -> None:
    seen: list[Any] = []

    @traced.app.task(name="seen")
    async def inner() -> None:
        seen.append(baggage.get_baggage("customer"))

    with Harness(traced.app) as queue:
        tracer = traced.recorded.provider.get_tracer("request")
        token = context.attach(baggage.set_baggage("customer", "c7"))
        with tracer.start_as_current_span("request"):
            job = inner.enqueue()
        context.detach(token)
        queue.run()
        meta = queue.job(job.id).meta
    spans = traced.spans
    request, sent, ran = spans["request"], spans["enqueue seen"], spans["process seen"]
    assert sent.parent == request.context
    assert ran.parent is None
    assert sent.context is not None
    assert [link.context.span_id for link in ran.links] == [sent.context.span_id]
    assert set(meta) == {"traceparent", "baggage"}
    assert seen == ["c7"]


def test_propagation_can_make_the_attempt_a_child_or_store_nothing() -> None:
    for propagation, is_child in (("parent", True), ("none", False)):
        traced = Traced(propagation=propagation)
        task = traced.app.task(name="task")(print)
        with Harness(traced.app) as queue:
            job = task.enqueue()
            queue.run()
            assert bool(queue.job(job.id).meta) is is_child
        ran = traced.spans["process task"]
        assert (ran.parent is not None) is is_child
        assert ran.links == ()
    with pytest.raises(BadSettings, match="choose link, parent or none"):
        Traced(propagation="both")


class OtherFormat(TraceContextTextMapPropagator):
    """A format with another key, as B3 is."""

    def inject(self, carrier: Any, context: Any = None, setter: Any = default_setter) -> None:
        own: dict[str, str] = {}
        super().inject(own, context)
        setter.set(carrier, "other", own["traceparent"])


@pytest.fixture
def other_format() -> Iterator[None]:
    before = propagate.get_global_textmap()
    propagate.set_global_textmap(OtherFormat())
    yield
    propagate.set_global_textmap(before)


def test_a_format_with_another_key_keeps_no_job_from_being_stored(
    traced: Traced, other_format: None
) -> None:
    task = traced.app.task(name="task")(print)
    with Harness(traced.app) as queue:
        job = task.enqueue()
        assert set(queue.job(job.id).meta) == {"other"}
        queue.run()
    assert "enqueue task" in traced.spans


def test_many_jobs_have_one_span_whose_context_goes_with_all(traced: Traced) -> None:
    task = traced.app.task(name="task")(print)
    with Harness(traced.app) as queue:
        jobs = traced.app.enqueue_many([task.prepare() for _ in range(3)])
        own = task.using(meta={"traceparent": "mine"}).enqueue()
        assert len({queue.job(job.id).meta["traceparent"] for job in jobs}) == 1
        assert queue.job(own.id).meta == {"traceparent": "mine"}
    (span,) = traced.recorded.spans
    assert (span.attributes or {})["messaging.batch.message_count"] == 3
    assert traced.metrics()["messaging.client.sent.messages"][0][1] == 4


def test_a_context_that_does_not_fit_into_the_metadata_is_left_out(traced: Traced) -> None:
    task = traced.app.task(name="task")(print)
    meta = {"large": "x" * 4070}
    with Harness(traced.app) as queue:
        job = task.using(meta=meta).enqueue()
        assert queue.job(job.id).meta == meta
    assert [span.name for span in traced.recorded.spans] == ["enqueue task"]


def test_an_enqueue_that_fails_ends_its_span_with_the_error(traced: Traced) -> None:
    class Refuses(Extension):
        def enqueueing(self, jobs: list[NewJob]) -> list[NewJob]:
            raise Refused("closed")

    app = traced.app
    app.migrate()
    task = app.task(name="task")(print)
    with pytest.raises(Exception, match="connection"):
        task.using(connection=object()).enqueue()
    app.extend(Refuses())
    with pytest.raises(Refused):
        task.enqueue()
    with pytest.raises(Refused):
        asyncio.run(task.aenqueue())
    app.close()
    kinds = [(span.attributes or {})["error.type"] for span in traced.recorded.spans]
    assert kinds == ["freehold.errors.BadInput", *["freehold.errors.Refused"] * 2]
    points = traced.metrics()["messaging.client.operation.duration"]
    assert sorted((point["error.type"], count) for point, count in points) == [
        ("freehold.errors.BadInput", 1),
        ("freehold.errors.Refused", 2),
    ]


def test_the_metrics_have_the_names_and_attributes_of_the_conventions(traced: Traced) -> None:
    @traced.app.task(name="task", queue="bills", retry=Retry(max_attempts=1))
    def divide(by: int) -> float:
        return 1 / by

    with Harness(traced.app) as queue:
        divide.enqueue(1)
        divide.enqueue(0)
        queue.run()
    common = {"messaging.system": "freehold", "messaging.destination.name": "bills"}
    sent = {**common, "messaging.operation.name": "enqueue", "messaging.operation.type": "send"}
    ran = {**common, "messaging.operation.name": "process", "messaging.operation.type": "process"}
    failed = {**ran, "error.type": "builtins.ZeroDivisionError"}
    assert traced.metrics() == {
        "messaging.client.sent.messages": [(sent, 2)],
        "messaging.client.operation.duration": [(sent, 2)],
        "messaging.client.consumed.messages": [(ran, 2)],
        "messaging.process.duration": [(ran, 1), (failed, 1)],
    }


def test_a_snooze_is_no_error_and_a_timeout_is_one(traced: Traced) -> None:
    @traced.app.task(name="snoozes")
    def snoozes(ctx: Context) -> None:
        raise Snooze(1e6)

    @traced.app.task(name="hangs", timeout=5, retry=Retry(max_attempts=1))
    async def hangs() -> None:
        await asyncio.Event().wait()

    with Harness(traced.app) as queue:
        snoozes.enqueue()
        hangs.enqueue()
        queue.run(seconds=60)
    spans = traced.spans
    assert (spans["process snoozes"].attributes or {})["freehold.outcome"] == "snooze"
    assert spans["process snoozes"].status.is_ok
    assert (spans["process hangs"].attributes or {})["error.type"] == "timeout"
    assert not spans["process hangs"].status.is_ok


def test_no_span_contains_a_secret_argument(traced: Traced) -> None:
    @traced.app.task(name="task", retry=Retry(max_attempts=1))
    def login(password: Annotated[str, Secret]) -> None:
        raise ValueError(f"wrong: {password}")

    with Harness(traced.app) as queue:
        login.enqueue("hunter2")
        queue.run()
    assert "hunter2" not in "".join(span.to_json() for span in traced.recorded.spans)
    assert (traced.spans["process task"].attributes or {})["error.type"] == "builtins.ValueError"


# -- processes -------------------------------------------------------------------------------


def test_a_child_process_exports_its_spans_before_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans = tmp_path / "spans"
    monkeypatch.setenv(traced_app.FILE_VARIABLE, str(spans))
    app = traced_app.app
    before = app._swap_client(Client(open_memory(system_micros), tasks=app.tasks))
    job = traced_app.child.enqueue()
    app.run_worker(until_idle=True)
    assert spans.read_text().splitlines() == [
        f"process tests.contrib.traced_app.child {job.result()}"
    ]
    app.close()
    app._swap_client(before)


def test_the_worker_makes_the_span_of_an_attempt_whose_child_process_died() -> None:
    app, recorded = traced_app.app, RecordedSpans()
    traced_app.provider.add_span_processor(recorded.provider._active_span_processor)
    before = app._swap_client(Client(open_memory(system_micros), tasks=app.tasks))
    traced_app.dies.enqueue()
    app.run_worker(until_idle=True)
    app.close()
    app._swap_client(before)
    ran = next(span for span in recorded.spans if span.name.startswith("process"))
    assert (ran.attributes or {})["error.type"] == "ProcessDied"
    assert len(ran.links) == 1


_APP = """
from freehold import Freehold
app = Freehold("jobs.db")

@app.task
async def here(): ...

@app.task(isolation="process")
def child(): ...
"""
_CONFIGURATOR = """
[opentelemetry_configurator]
configurator = opentelemetry.sdk._configuration:_OTelSDKConfigurator
"""


@pytest.fixture
def uninstrumented() -> Iterator[None]:
    yield
    FreeholdInstrumentor().uninstrument()


def test_instrumenting_twice_extends_new_apps_once(uninstrumented: None) -> None:
    for _ in range(2):
        FreeholdInstrumentor().instrument(skip_dep_check=True)
    assert (len(default_extensions), len(child_preparations)) == (1, 1)
    assert len(Freehold("sqlite://:memory:").tasks.extensions.attempts) == 1
    traced = Traced()  # its own call, beside `opentelemetry-instrument`
    assert len(traced.app.tasks.extensions.attempts) == 1
    traced.app.task(name="bill")(lambda: None)
    with Harness(traced.app) as queue:
        traced.app.tasks.get("bill").enqueue()
        queue.run()
    assert [each.name for each in traced.recorded.spans] == ["enqueue bill", "process bill"]
    FreeholdInstrumentor().uninstrument()
    assert (default_extensions, child_preparations) == ([], [])


def test_opentelemetry_instrument_traces_a_worker_and_its_children_without_code(
    tmp_path: Path,
) -> None:
    (tmp_path / "shop.py").write_text(_APP)
    configurator = tmp_path / "configurator-1.dist-info"  # as opentelemetry-distro has it
    configurator.mkdir()
    (configurator / "METADATA").write_text("Name: configurator\nVersion: 1\n")
    (configurator / "entry_points.txt").write_text(_CONFIGURATOR)
    enqueue(tmp_path, "shop.here")
    enqueue(tmp_path, "shop.child")
    done = run(tmp_path, "worker", "--app", "shop:app", "--until-idle")
    names = [json.loads(span)["name"] for span in done.replace("}\n{", "}\n\0{").split("\0")]
    assert sorted(names) == ["process shop.child", "process shop.here"]


def enqueue(folder: Path, task: str) -> None:
    run(folder, "enqueue", task, "--app", "shop:app", exporter="none")


def run(folder: Path, *arguments: str, exporter: str = "console") -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("FREEHOLD")}
    env |= {"OTEL_TRACES_EXPORTER": exporter, "OTEL_METRICS_EXPORTER": "none"}
    env |= {"OTEL_LOGS_EXPORTER": "none", "PYTHONPATH": str(folder)}
    tool = Path(sys.executable).with_name("opentelemetry-instrument")
    command = [str(tool), sys.executable, "-m", "freehold", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
