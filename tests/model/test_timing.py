"""Ticks of cron expressions and intervals, also where a clock changes."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.errors import BadInput
from freehold.model.timing import Cron, Every, first_after, last_between, ticks_between

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}:00+00:00")


#: Written by hand from the dates of the law: zone, expression, from, to, and the ticks between, in
#: UTC. Berlin changes at 01:00 UTC, New York at 02:00 local time, Lord Howe by half an hour,
#: Santiago at midnight.
CLOCK_CHANGES = [
    # Berlin, 2026-03-29: 02:00 becomes 03:00.
    ("Europe/Berlin", "30 2 * * *", "2026-03-28T12:00", "2026-03-30T12:00",
     ["2026-03-29T01:00", "2026-03-30T00:30"]),
    ("Europe/Berlin", "0 3 * * *", "2026-03-28T12:00", "2026-03-30T12:00",
     ["2026-03-29T01:00", "2026-03-30T01:00"]),
    ("Europe/Berlin", "0,30 2 * * *", "2026-03-28T12:00", "2026-03-29T12:00",
     ["2026-03-29T01:00"]),
    ("Europe/Berlin", "*/30 * * * *", "2026-03-29T00:00", "2026-03-29T02:00",
     ["2026-03-29T00:30", "2026-03-29T01:00", "2026-03-29T01:30", "2026-03-29T02:00"]),
    # Berlin, 2026-10-25: 03:00 becomes 02:00.
    ("Europe/Berlin", "30 2 * * *", "2026-10-24T12:00", "2026-10-26T12:00",
     ["2026-10-25T00:30", "2026-10-26T01:30"]),
    ("Europe/Berlin", "0 3 * * *", "2026-10-24T12:00", "2026-10-26T12:00",
     ["2026-10-25T02:00", "2026-10-26T02:00"]),
    ("Europe/Berlin", "*/30 * * * *", "2026-10-25T00:00", "2026-10-25T02:00",
     ["2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30", "2026-10-25T02:00"]),
    # From within the second 02:10: 02:45 was due an hour ago.
    ("Europe/Berlin", "45 2 * * *", "2026-10-25T01:10", "2026-10-26T12:00",
     ["2026-10-26T01:45"]),
    # New York, 2026-03-08: 02:00 becomes 03:00.
    ("America/New_York", "30 2 * * *", "2026-03-07T12:00", "2026-03-09T12:00",
     ["2026-03-08T07:00", "2026-03-09T06:30"]),
    ("America/New_York", "0 * * * *", "2026-03-08T05:30", "2026-03-08T08:30",
     ["2026-03-08T06:00", "2026-03-08T07:00", "2026-03-08T08:00"]),
    # New York, 2026-11-01: 02:00 becomes 01:00.
    ("America/New_York", "30 1 * * *", "2026-10-31T12:00", "2026-11-02T12:00",
     ["2026-11-01T05:30", "2026-11-02T06:30"]),
    ("America/New_York", "0 * * * *", "2026-11-01T04:30", "2026-11-01T07:30",
     ["2026-11-01T05:00", "2026-11-01T06:00", "2026-11-01T07:00"]),
    # Lord Howe, 2026-10-04: 02:00 becomes 02:30.
    ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03T06:00", "2026-10-05T06:00",
     ["2026-10-03T15:30", "2026-10-04T15:15"]),
    ("Australia/Lord_Howe", "*/30 * * * *", "2026-10-03T14:45", "2026-10-03T16:15",
     ["2026-10-03T15:00", "2026-10-03T15:30", "2026-10-03T16:00"]),
    # Lord Howe, 2026-04-05: 02:00 becomes 01:30.
    ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04T06:00", "2026-04-06T06:00",
     ["2026-04-04T14:45", "2026-04-05T15:15"]),
    ("Australia/Lord_Howe", "0 2 * * *", "2026-04-04T06:00", "2026-04-05T06:00",
     ["2026-04-04T15:30"]),
    # Santiago, 2026-09-06: midnight becomes 01:00.
    ("America/Santiago", "0 0 * * *", "2026-09-05T12:00", "2026-09-07T12:00",
     ["2026-09-06T04:00", "2026-09-07T03:00"]),
    ("America/Santiago", "30 0 * * *", "2026-09-05T12:00", "2026-09-07T12:00",
     ["2026-09-06T04:00", "2026-09-07T03:30"]),
    # Santiago, 2026-04-05: midnight becomes 23:00 of the day before.
    ("America/Santiago", "30 23 * * *", "2026-04-04T12:00", "2026-04-06T12:00",
     ["2026-04-05T02:30", "2026-04-06T03:30"]),
    ("America/Santiago", "0 0 * * *", "2026-04-04T12:00", "2026-04-06T12:00",
     ["2026-04-05T04:00", "2026-04-06T04:00"]),
]  # fmt: skip


@pytest.mark.requirement("N3")
@pytest.mark.parametrize(("zone", "expression", "after", "until", "expected"), CLOCK_CHANGES)
def test_no_clock_change_loses_or_repeats_a_tick(
    zone: str, expression: str, after: str, until: str, expected: list[str]
) -> None:
    found, _ = ticks_between(Cron(expression, zone), utc(after), utc(until), T0, 100)
    assert found == [utc(each) for each in expected]


ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "UTC")
EXPRESSIONS = ("30 2 * * *", "*/20 * * * *", "0 0,1,2,3,23 * * *", "15 1-3 * * 0", "5 4 3 2 * *")
timings = st.builds(Cron, st.sampled_from(EXPRESSIONS), st.sampled_from(ZONES)) | st.builds(
    lambda seconds: Every(seconds=seconds), st.integers(600, 10 * 86400)
)
moments = st.integers(0, 366 * 86400).map(lambda seconds: T0 + timedelta(seconds=seconds))


@pytest.mark.requirement("N3")
@given(timing=timings, start=moments, shift=st.integers(1, 3 * 86400))
def test_a_tick_does_not_depend_on_the_moment_from_which_it_is_searched(
    timing: Cron | Every, start: datetime, shift: int
) -> None:
    earlier = start - timedelta(seconds=shift)
    listed, following = ticks_between(timing, earlier, start, T0, 10_000)
    assert all(a < b for a, b in itertools.pairwise(listed))
    assert following == first_after(timing, start, T0)


@pytest.mark.requirement("N2")
@given(timing=timings, start=moments, span=st.integers(1, 40 * 86400))
def test_the_last_tick_is_found_without_passing_through_all(
    timing: Cron | Every, start: datetime, span: int
) -> None:
    until = start + timedelta(seconds=span)
    listed, _ = ticks_between(timing, start, until, T0, 10_000)
    if listed:
        assert last_between(timing, listed[0], until, T0) == listed[-1]


@given(seconds=st.integers(1, 10**6), start=moments)
def test_an_interval_counts_from_its_anchor_not_from_a_start_of_a_process(
    seconds: int, start: datetime
) -> None:
    tick = first_after(Every(seconds=seconds), start, T0)
    assert tick is not None
    assert start < tick <= max(start, T0) + timedelta(seconds=seconds)
    assert (tick - T0) % timedelta(seconds=seconds) == timedelta(0)


@pytest.mark.requirement("N3")
@pytest.mark.parametrize(
    "expression",
    [
        "0 0 30 2 *",
        "* * */20 * 1L",
        "0 0 31 4,6,9,11 *",
    ],
)
def test_an_expression_that_never_falls_due_is_refused(expression: str) -> None:
    with pytest.raises(BadInput, match="never falls due"):
        Cron(expression)


@pytest.mark.parametrize(
    "expression",
    ["", " ", "* * * *", "60 * * * *", "*/0 * * * *", "a b c d e", "1-100000000 * * * *",
     "* * * * * * *", "0 0 * * * 2030", "0 0 1 1 MON#9", "\u0661 * * * *", "0 0\n* * *"],
)  # fmt: skip
def test_an_invalid_expression_is_refused_with_its_text(expression: str) -> None:
    with pytest.raises(BadInput, match="cron expression"):
        Cron(expression)


def test_an_expression_of_201_characters_is_refused() -> None:
    longest = ",".join(["0"] * 96) + " * * * *"
    Cron(longest.ljust(200))
    with pytest.raises(BadInput, match="at most 200"):
        Cron(longest.ljust(201))


def test_reboot_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(BadInput, match="where your program starts"):
        Cron("@reboot")


@pytest.mark.requirement("N3")
@pytest.mark.parametrize(
    ("zone", "suggested"),
    [
        ("Europe/Berln", "did you mean Europe/Berlin"),
        ("europe/berlin", "did you mean Europe/Berlin"),
        ("Berlin", "did you mean Europe/Berlin"),
        ("new york", "did you mean America/New_York"),
        ("Mars/Olympus_Mons_Base", "IANA"),
        ("localtime", "IANA"),
        ("../../etc/passwd", "IANA"),
        ("", "IANA"),
    ],
)
def test_an_unknown_zone_is_refused_with_a_suggestion(zone: str, suggested: str) -> None:
    with pytest.raises(BadInput, match="no time zone") as refused:
        Cron("0 7 * * *", zone)
    assert suggested in str(refused.value)


@pytest.mark.parametrize("seconds", [0, 0.5, -1, float("nan"), float("inf"), 1e12])
def test_an_interval_below_a_second_or_without_end_is_refused(seconds: float) -> None:
    with pytest.raises(BadInput, match="Every"):
        Every(seconds=seconds)


def test_nicknames_and_texts() -> None:
    assert str(Every(minutes=15)) == "every 15 min"
    assert str(Every(days=1)) == "every 1 d"
    assert str(Every(seconds=90)) == "every 90 s"
    assert str(Cron("@daily", "Europe/Berlin")) == "@daily Europe/Berlin"
    assert Every(minutes=1) == Every(seconds=60)
    assert first_after(Cron("@hourly"), T0, T0) == T0 + timedelta(hours=1)
