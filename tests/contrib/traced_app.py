"""An app whose spans are written to a file by every process that has one."""

from __future__ import annotations

import os
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

from freehold import Freehold, Retry
from freehold.contrib.otel import instrument

FILE_VARIABLE = "TRACED_APP_SPANS"
provider = TracerProvider()
if FILE_VARIABLE in os.environ:
    out = Path(os.environ[FILE_VARIABLE]).open("a")  # noqa: SIM115 - until the process ends
    # A batch that is sent only when its process ends in good order.
    exporter = ConsoleSpanExporter(out=out, formatter=lambda span: f"{span.name} {os.getpid()}\n")
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=600_000))

app = Freehold("sqlite://:memory:")
instrument(app, tracer_provider=provider)


@app.task(isolation="process", retry=Retry(max_attempts=1))
def child() -> int:
    return os.getpid()


@app.task(isolation="process", retry=Retry(max_attempts=1))
def dies() -> None:
    os._exit(9)
