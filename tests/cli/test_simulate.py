"""`freehold simulate`: the answer in words and as a document, and what a failing seed shows."""

from __future__ import annotations

from tests.cli.shell import run
from tests.simulation.bugs import BUGS


def test_good_seeds_are_counted() -> None:
    found = run("simulate", "--seeds", "2", "--from", "3", "--json").json
    assert (found["seeds"], found["failed"], found["story"]) == (2, {}, [])
    assert found["jobs"] > 0
    assert found["transitions"]["queued -> assigned"] > 0
    said = run("simulate", "--seeds", "1")
    assert "violations in 0 seeds" in said.out


def test_a_failing_seed_is_named_and_told() -> None:
    bug = BUGS["a promotion is lost"]
    with bug.plant():
        said = run("simulate", "--seeds", "1", "--from", str(bug.seeds[0]), "--no-shrink")
    assert said.code == 1
    assert f"`freehold simulate --from {bug.seeds[0]} --seeds 1`" in said.out
