"""The picture of a workflow: layers, places and lines."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from freehold.dashboard.graph import BOX_HEIGHT, NODES_DRAWN, Picture, count_parts, graph_picture
from freehold.model.flow import Counts, OnFailure
from freehold.model.flow_graph import NodeInfo

pytestmark = pytest.mark.requirement("N14")


def node(number: int, *sources: int) -> NodeInfo:
    return NodeInfo(
        number=number,
        name=f"n{number}",
        state="waiting",
        job_id=number,
        group=None,
        counts=None,
        on_failure=OnFailure.CANCEL,
        sources=sources,
    )


def drawn(*nodes: NodeInfo) -> Picture:
    picture = graph_picture(nodes)
    assert picture is not None
    return picture


def test_a_node_stands_after_the_last_of_its_sources() -> None:
    picture = drawn(node(1), node(2, 1), node(3, 2), node(4, 1, 3), node(5))
    x = {box.node.number: box.x for box in picture.boxes}
    assert x[1] == x[5] < x[2] < x[3] < x[4]


def test_an_edge_that_passes_a_layer_does_not_run_behind_a_box() -> None:
    picture = drawn(node(1), node(2, 1), node(3, 1, 2))
    (between,) = [box for box in picture.boxes if box.node.number == 2]
    (passing,) = [line.path for line in picture.lines if " H" in line.path]
    y = int(passing.split(" H")[0].split()[-1])
    assert not between.y <= y <= between.y + BOX_HEIGHT
    assert len(picture.lines) == 4


@pytest.mark.parametrize("seed", range(20))
def test_boxes_do_not_overlap_and_are_inside_the_picture(seed: int) -> None:
    chance = random.Random(seed)
    nodes = [
        node(number, *chance.sample(range(1, number), min(number - 1, 2)))
        for number in range(1, chance.randint(3, 60))
    ]
    picture = drawn(*nodes)
    assert len(picture.boxes) == len(nodes)
    by_column: dict[int, list[int]] = {}
    for box in picture.boxes:
        by_column.setdefault(box.x, []).append(box.y)
        assert 0 <= box.y <= picture.height - BOX_HEIGHT
    for places in by_column.values():
        places.sort()
        pairs = pairwise(places)
        assert all(lower - upper > BOX_HEIGHT for upper, lower in pairs)


def test_what_a_reader_cannot_follow_is_not_drawn() -> None:
    assert graph_picture([]) is None
    assert graph_picture([node(number) for number in range(1, NODES_DRAWN + 2)]) is None
    tangle = [node(number, *range(1, number)) for number in range(1, NODES_DRAWN + 1)]
    assert graph_picture(tangle) is None


def test_one_failure_of_a_million_can_be_seen() -> None:
    parts = count_parts(Counts(1_000_000, succeeded=999_998, failed=1, canceled=1))
    assert [state for state, _, _ in parts] == ["succeeded", "failed", "canceled"]
    assert all(width >= 1 for _, _, width in parts)
    assert parts[-1][1] + parts[-1][2] <= 100
    assert count_parts(Counts(0)) == []
