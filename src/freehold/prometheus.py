"""Metrics in the text format of Prometheus (version 0.0.4).

Written by hand: it is one page of code, and workers need no package for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from freehold.telemetry import BUCKETS, COUNTERS, DURATIONS, GAUGES, LABEL_VALUES, LABELS, Telemetry

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PREFIX = "freehold_"


class Sample(NamedTuple):
    """One number. ``suffix`` is appended to the metric's name."""

    value: float
    labels: tuple[tuple[str, str], ...] = ()
    suffix: str = ""


class Metric(NamedTuple):
    """Samples under one name."""

    name: str
    kind: str
    help: str
    samples: list[Sample]


def metrics_text(metrics: Iterable[Metric]) -> str:
    return "".join(line + "\n" for metric in metrics for line in _lines(metric))


def process_metrics(telemetry: Telemetry) -> Iterator[Metric]:
    """The counters, durations and gauges of one process."""
    counts = telemetry.counts()
    for name, help in COUNTERS.items():
        yield Metric(f"{name}_total", "counter", help, _counted(name, counts))
    for name, help in DURATIONS.items():
        yield Metric(name, "histogram", help, _measured(telemetry, name))
    for name, value in telemetry.gauges().items():
        yield Metric(name, "gauge", GAUGES[name], [Sample(value)])


def _counted(name: str, counts: dict[tuple[str, str], int]) -> list[Sample]:
    if name not in LABELS:  # a counter without events is 0, not missing
        return [Sample(counts.get((name, ""), 0))]
    found = dict.fromkeys(LABEL_VALUES.get(name, ()), 0)
    found |= {label: n for (key, label), n in counts.items() if key == name}
    return [Sample(n, ((LABELS[name], label),)) for label, n in sorted(found.items())]


def _measured(telemetry: Telemetry, name: str) -> list[Sample]:
    """Buckets are cumulative: each includes those before it."""
    measured = telemetry.histogram(name)
    samples, so_far = [], 0
    for bound, count in zip((*BUCKETS, float("inf")), measured.counts, strict=True):
        so_far += count
        samples.append(Sample(so_far, (("le", _number(bound)),), "_bucket"))
    return [*samples, Sample(measured.total_seconds, suffix="_sum"), Sample(so_far, (), "_count")]


def _lines(metric: Metric) -> Iterator[str]:
    name = _PREFIX + metric.name
    yield f"# HELP {name} {metric.help}"
    yield f"# TYPE {name} {metric.kind}"
    for sample in metric.samples:
        labels = ",".join(f'{key}="{_escaped(value)}"' for key, value in sample.labels)
        shown = f"{{{labels}}}" if labels else ""
        yield f"{name}{sample.suffix}{shown} {_number(sample.value)}"


def _number(value: float) -> str:
    return "+Inf" if value == float("inf") else repr(value)


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
