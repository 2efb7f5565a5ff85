"""`freehold simulate`: its output as text and JSON, and the output for a failing seed."""

from __future__ import annotations

from tests.cli.shell import run
from tests.simulation.bugs import BUGS


def test_good_seeds_are_counted() -> None:
    found = run("simulate", "--seeds", "2", "--from", "3", "--json").json
    assert (found["seeds"], found["failed"], found["trace"]) == (2, {}, [])
    assert found["jobs"] > 0
    assert found["transitions"]["queued -> assigned"] > 0
    result = run("simulate", "--seeds", "1")
    assert "1 seed," in result.out
    assert "violations in 0 seeds" in result.out


def test_a_failing_seed_is_named() -> None:
    bug = BUGS["a promotion is lost"]
    with bug.plant():
        result = run("simulate", "--seeds", "1", "--from", str(bug.seeds[0]), "--no-shrink")
    assert result.code == 1
    assert f"`freehold simulate --from {bug.seeds[0]} --seeds 1`" in result.out
