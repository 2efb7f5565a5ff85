"""Every metric, as a real service and a real worker export it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

import httpx

from freehold import Freehold
from freehold.http import Caller, Role, api
from freehold.telemetry import GAUGES, LABELS
from scripts.site.markdown import page, table

INTRO = """In the text format of Prometheus, at `/metrics` of the API and, with `--metrics-port`, of each worker.
[Monitoring](../monitoring.md) has scrape settings and alert rules. The metrics of the store are the same from every
process that serves them: use `max`, not `sum`, over instances. Counters belong to one process: use `sum`."""


def metrics_page() -> str:
    found = list(exported())
    of_store = [row for row in found if row[1] == "gauge"]
    of_process = [row for row in found if row[1] != "gauge"]
    heads = ["metric", "type", "labels", "meaning"]
    gauges = [[f"`freehold_{name}`", "gauge", "", help] for name, help in GAUGES.items()]
    return page(
        "Metrics",
        INTRO,
        "## Of the store\n\nServed by the API (`freehold up`).\n\n" + table(heads, of_store),
        "## Of a process\n\nServed by the API for its own process, and by each worker.\n\n"
        + table(heads, [*of_process, *gauges]),
    )


def exported() -> Iterator[list[str]]:
    """Name, type, labels and help of each metric of an app with one queue."""
    app = Freehold("sqlite:///:memory:")
    app.operator.pause_queue("default", by="reference")
    text = asyncio.run(_scrape(app))
    for name, help in re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE):
        kind = re.search(rf"^# TYPE {name} (\w+)$", text, re.MULTILINE)
        assert kind is not None, name
        labels = set(re.findall(rf"^{name}(?:_bucket)?{{(\w+)=", text, re.MULTILINE)) - {"le"}
        short = name.removeprefix("freehold_").removesuffix("_total")
        labels |= {LABELS[short]} if short in LABELS else set()
        yield [f"`{name}`", kind[1], ", ".join(f"`{label}`" for label in sorted(labels)), help]


async def _scrape(app: Freehold) -> str:
    service = api(app, identify=lambda request: Caller("reference", Role.VIEWER))
    transport = httpx.ASGITransport(service)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        response = await client.get("/metrics")
    await app.aclose()
    return response.raise_for_status().text
