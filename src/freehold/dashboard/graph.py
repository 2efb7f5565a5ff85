"""The graph of a workflow as numbers for SVG. Pure.

Nodes stand in layers from left to right: each one layer after the last of its sources. An edge that
passes layers has a slot of its own in each of them, so that it does not run behind boxes; all such
edges of one source share these slots.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from statistics import fmean
from typing import NamedTuple

from freehold.model.flow import Counts
from freehold.model.flow_graph import NodeInfo

#: Nodes of a picture; a larger graph is shown as a table only.
NODES_DRAWN = 200
#: Boxes and passing edges of a picture, and lines between them.
_SLOTS_DRAWN = 2_000
_LINES_DRAWN = 4_000
BOX_WIDTH, BOX_HEIGHT = 172, 44
_GAP_X, _GAP_Y = 56, 14
_PASSING_HEIGHT = 6
_MARGIN = 4
_NAME_LENGTH = 21
#: The least width of a part of a bar, in percent: one failure of a million can be seen.
_LEAST_PART = 1.5


class Slot(NamedTuple):
    """A place in a layer: a node, or the edge of a node that passes."""

    layer: int
    number: int


class Box(NamedTuple):
    node: NodeInfo
    x: int
    y: int

    @property
    def label(self) -> str:
        name = self.node.name
        return name if len(name) <= _NAME_LENGTH else f"{name[: _NAME_LENGTH - 1]}…"


class Line(NamedTuple):
    """From a slot to one of the next layer. ``source``: the state of the node it comes from."""

    path: str
    source: str


class Picture(NamedTuple):
    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


def graph_picture(nodes: Sequence[NodeInfo]) -> Picture | None:
    """None: there is nothing to draw, or more than a reader can follow."""
    if not 0 < len(nodes) <= NODES_DRAWN:
        return None
    by_number = {node.number: node for node in nodes}
    sources = {node.number: [each for each in node.sources if each in by_number] for node in nodes}
    layers = layers_of(sources)
    lines = set(_lines(sources, layers))
    slots = {Slot(layer, number) for number, layer in layers.items()}
    slots |= {end for line in lines for end in line}
    if len(slots) > _SLOTS_DRAWN or len(lines) > _LINES_DRAWN:
        return None
    ordered = _ordered(slots, lines)
    height = max(sum(_height(slot, layers) for slot in layer) for layer in ordered) - _GAP_Y
    places = dict(_places(ordered, layers, height))
    return Picture(
        len(ordered) * (BOX_WIDTH + _GAP_X) - _GAP_X + 2 * _MARGIN,
        height + 2 * _MARGIN,
        tuple(
            Box(by_number[slot.number], x, y)
            for slot, (x, y) in places.items()
            if layers[slot.number] == slot.layer
        ),
        tuple(
            Line(_path(places, layers, start, end), by_number[start.number].state)
            for start, end in sorted(lines)
        ),
    )


def layers_of(sources: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """The length of the longest path to each node."""
    layers: dict[int, int] = {}
    for number in TopologicalSorter(sources).static_order():
        layers[number] = max((layers[each] + 1 for each in sources[number]), default=0)
    return layers


def _lines(
    sources: Mapping[int, Sequence[int]], layers: Mapping[int, int]
) -> Iterator[tuple[Slot, Slot]]:
    for number, of_node in sources.items():
        for source in of_node:
            for layer in range(layers[source], layers[number] - 1):
                yield Slot(layer, source), Slot(layer + 1, source)
            yield Slot(layers[number] - 1, source), Slot(layers[number], number)


def _ordered(slots: set[Slot], lines: set[tuple[Slot, Slot]]) -> list[list[Slot]]:
    """The slots of each layer, each near those that lead to it."""
    before: dict[Slot, list[Slot]] = {}
    for start, end in lines:
        before.setdefault(end, []).append(start)
    ordered: list[list[Slot]] = [[] for _ in range(1 + max(slot.layer for slot in slots))]
    for slot in sorted(slots):
        ordered[slot.layer].append(slot)
    places: dict[Slot, float] = {}
    for layer in ordered:
        near = {slot: [places[each] for each in before.get(slot, ())] for slot in layer}
        wanted = {slot: (fmean(at or [0.0]), slot.number) for slot, at in near.items()}
        layer.sort(key=wanted.__getitem__)
        places |= {slot: (index + 0.5) / len(layer) for index, slot in enumerate(layer)}
    return ordered


def _height(slot: Slot, layers: Mapping[int, int]) -> int:
    is_box = layers[slot.number] == slot.layer
    return (BOX_HEIGHT if is_box else _PASSING_HEIGHT) + _GAP_Y


def _places(
    ordered: Sequence[Sequence[Slot]], layers: Mapping[int, int], height: int
) -> Iterator[tuple[Slot, tuple[int, int]]]:
    """The upper left corner of each slot; a layer stands in the middle of the height."""
    for number, layer in enumerate(ordered):
        used = sum(_height(slot, layers) for slot in layer) - _GAP_Y
        y = _MARGIN + (height - used) // 2
        for slot in layer:
            yield slot, (_MARGIN + number * (BOX_WIDTH + _GAP_X), y)
            y += _height(slot, layers)


def _path(
    places: Mapping[Slot, tuple[int, int]], layers: Mapping[int, int], start: Slot, end: Slot
) -> str:
    """A curve across the gap, and on across the layer if the edge passes it."""
    (x1, y1), (x2, y2) = places[start], places[end]
    x1 += BOX_WIDTH
    y1 += (_height(start, layers) - _GAP_Y) // 2
    y2 += (_height(end, layers) - _GAP_Y) // 2
    middle = (x1 + x2) // 2
    passes = f" H{x2 + BOX_WIDTH}" if layers[end.number] != end.layer else ""
    return f"M{x1} {y1} C{middle} {y1} {middle} {y2} {x2} {y2}{passes}"


def count_parts(counts: Counts) -> list[tuple[str, float, float]]:
    """A bar of a hundred units: the state, the beginning and the width of each part."""
    numbers = {state: getattr(counts, state) for state in ("succeeded", "failed", "canceled")}
    widths = {
        state: max(100 * number / counts.total, _LEAST_PART)
        for state, number in numbers.items()
        if number
    }
    scale = min(1.0, 100 / max(sum(widths.values()), 1.0))
    found, x = [], 0.0
    for state, width in widths.items():
        found.append((state, round(x, 2), round(width * scale, 2)))
        x += width * scale
    return found
