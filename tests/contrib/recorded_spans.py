"""Spans with ids that are the same in every run, as values that a file can contain."""

from __future__ import annotations

import itertools
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator


class _Counted(IdGenerator):
    def __init__(self) -> None:
        self._ids = itertools.count(1)

    def generate_span_id(self) -> int:
        return next(self._ids)

    def generate_trace_id(self) -> int:
        return next(self._ids) << 64


class RecordedSpans:
    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(id_generator=_Counted())
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def documents(self) -> list[dict[str, Any]]:
        """Other spans are named by the position of their span in this list."""
        positions = {span.context.span_id: n for n, span in enumerate(self.spans) if span.context}
        return [self._document(span, positions) for span in self.spans]

    def _document(self, span: ReadableSpan, positions: dict[int, int]) -> dict[str, Any]:
        return {
            "name": span.name,
            "kind": span.kind.name,
            "status": span.status.status_code.name,
            "description": span.status.description,
            "parent": None if span.parent is None else positions[span.parent.span_id],
            "links": [positions[link.context.span_id] for link in span.links],
            "attributes": dict(sorted((span.attributes or {}).items())),
            "events": [
                [event.name, (event.attributes or {}).get("exception.type")]
                for event in span.events
            ],
        }
