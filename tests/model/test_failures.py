"""Failures that are alike are one group."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from freehold.model.failures import IDS_SHOWN, Failure, group, without_ids

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("no account 4711", "no account …"),
        ("timeout after 1.5 s", "timeout after … s"),
        ("order 123e4567-e89b-12d3-a456-426614174000 is gone", "order … is gone"),
        ("<Lock at 0x7f31ab>", "<Lock at …>"),
        ("commit 9fceb02d0ae598e9 failed", "commit … failed"),
        ("a decade of facade", "a decade of facade"),
        ("first line 1\nsecond line 2", "first line …"),
        ("  \n", ""),
    ],
)
def test_numbers_and_ids_are_taken_out_of_a_message(message: str, shown: str) -> None:
    assert without_ids(message) == shown


def test_a_long_message_is_cut() -> None:
    assert len(without_ids("x" * 5000)) == 200


def test_groups_are_by_task_error_and_message_and_the_largest_comes_first() -> None:
    rows = [
        Failure(1, "b", "builtins.ValueError", "no 1", NOW),
        Failure(2, "a", "builtins.ValueError", "no 1", NOW + timedelta(seconds=1)),
        Failure(3, "b", "builtins.ValueError", "no 2", NOW + timedelta(seconds=3)),
        Failure(4, "b", "builtins.KeyError", "no 2", NOW),
        Failure(5, "b", None, None, NOW),
    ]
    first, *rest = group(rows)
    assert (first.task, first.error, first.message) == ("b", "builtins.ValueError", "no …")
    assert (first.count, first.ids) == (2, (3, 1))
    assert (first.first_at, first.last_at) == (NOW, NOW + timedelta(seconds=3))
    assert [(each.task, each.error, each.ids) for each in rest] == [
        ("a", "builtins.ValueError", (2,)),
        ("b", None, (5,)),
        ("b", "builtins.KeyError", (4,)),
    ]


def test_a_group_names_its_newest_jobs() -> None:
    (found,) = group(Failure(number, "t", None, None, NOW) for number in range(1, 500))
    assert (found.count, len(found.ids), found.ids[0]) == (499, IDS_SHOWN, 499)
