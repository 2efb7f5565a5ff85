"""The stream of events: live, resumable, bounded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import psycopg
import pytest

from freehold.http.request_limits import RequestLimits
from freehold.model.operator_actions import OperatorVerb
from tests.http.desk import PATIENCE_SECONDS, Desk, problem, served, settings_with

#: Waits for each to be gone: until then its connection still looks whole.
_END = """
select pg_terminate_backend(pid, 30000) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()
"""
#: From the first event on, and only what is there.
ALL = "/api/events?after=0&follow=false"


class Told(NamedTuple):
    id: int
    kind: str
    data: dict[str, Any]


def parsed(lines: Iterator[str]) -> Iterator[Told]:
    """As a browser reads it."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line:
            if "data" in fields:
                yield Told(int(fields["id"]), fields["event"], json.loads(fields["data"]))
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value


def told(answer: httpx.Response) -> list[Told]:
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    return list(parsed(iter(answer.text.split("\n"))))


@pytest.mark.requirement("S2.5")
def test_events_are_told_in_order_with_who_and_why(desk: Desk) -> None:
    job_id = desk.add()
    desk.post(f"/api/jobs/{job_id}/pause", {"reason": "line\nbreak", "by": "ann"})
    desk.post(f"/api/jobs/{job_id}/resume")
    events = told(desk.get(ALL))
    assert [(event.kind, event.data["job_id"]) for event in events] == [
        ("paused", job_id),
        ("resumed", job_id),
    ]
    assert events[0].data["reason"] == "line\nbreak"
    assert events[0].data["by"] == "ann (local)"
    assert [event.id for event in events] == sorted(event.data["id"] for event in events)


def test_a_caller_that_was_cut_off_goes_on_where_it_was(desk: Desk) -> None:
    jobs = [desk.add() for _ in range(3)]
    for job_id in jobs:
        desk.act(OperatorVerb.PAUSE, job_id)
    first = told(desk.get(ALL))[0]
    by_header = told(desk.get(ALL, headers={"Last-Event-ID": str(first.id)}))
    by_query = told(desk.get(f"/api/events?after={first.id}&follow=false"))
    assert [event.data["job_id"] for event in by_header] == jobs[1:]
    assert by_query == by_header


def test_without_a_place_it_begins_now(desk: Desk) -> None:
    desk.act(OperatorVerb.PAUSE, desk.add())
    assert told(desk.get("/api/events?follow=false")) == []


@pytest.mark.parametrize("place", ["", "x", "-1", "1.5", "٣", "9" * 19, "9" * 40])
def test_a_place_that_is_none_is_refused(sqlite_desk: Desk, place: str) -> None:
    answer = sqlite_desk.get("/api/events", headers={"Last-Event-ID": place.encode()})
    assert "Last-Event-ID" in problem(answer, 422, "bad-input")


def test_what_happens_arrives_while_it_happens(desk: Desk) -> None:
    settings = settings_with(desk.folder, port=0)
    job_id = desk.add()
    desk.act(OperatorVerb.PAUSE, job_id)
    with served(desk.app, settings) as address, httpx.Client(timeout=PATIENCE_SECONDS) as caller:
        with caller.stream("GET", f"{address}/api/events?after=0") as stream:
            events = parsed(stream.iter_lines())
            assert next(events).kind == "paused"
            desk.app.operate.act(OperatorVerb.RESUME, [job_id], "ann")
            resumed = next(events)
            assert (resumed.kind, resumed.data["by"]) == ("resumed", "ann")
        desk.app.operate.act(OperatorVerb.CANCEL, [job_id], "ann")
        again = {"Last-Event-ID": str(resumed.id)}
        with caller.stream("GET", f"{address}/api/events", headers=again) as stream:
            assert next(parsed(stream.iter_lines())).kind == "canceled"


def test_streams_end_in_order_when_the_service_does(sqlite_desk: Desk) -> None:
    settings = settings_with(sqlite_desk.folder, port=0)
    with httpx.Client(timeout=PATIENCE_SECONDS) as caller:
        with served(sqlite_desk.app, settings) as address:
            request = caller.build_request("GET", f"{address}/api/events")
            stream = caller.send(request, stream=True)
            lines = stream.iter_lines()
            assert next(lines).startswith("retry: ")
        assert list(parsed(lines)) == []  # ended, and not cut off
        stream.close()


def test_there_are_only_so_many_streams(sqlite_desk: Desk) -> None:
    settings = settings_with(sqlite_desk.folder, port=0, stream_count=1)
    with (
        served(sqlite_desk.app, settings) as address,
        httpx.Client(timeout=PATIENCE_SECONDS) as caller,
    ):
        with caller.stream("GET", f"{address}/api/events") as stream:
            lines = stream.iter_lines()  # kept: httpx hangs up when nobody iterates any more
            assert next(lines).startswith("retry: ")
            assert "follow events already" in problem(
                caller.get(f"{address}/api/events"), 503, "too-many-streams"
            )
        # The one that ended makes room, as soon as the service has noticed.
        while (answer := caller.get(f"{address}{ALL}")).status_code == 503:
            pass
        assert answer.status_code == 200


def test_a_stream_outlives_the_store_s_absence(postgres_desk: Desk) -> None:
    desk = postgres_desk
    job_id = desk.add()
    with (
        served(desk.app, settings_with(desk.folder, port=0)) as address,
        httpx.Client(timeout=PATIENCE_SECONDS) as caller,
        caller.stream("GET", f"{address}/api/events") as stream,
    ):
        lines = stream.iter_lines()
        assert next(lines).startswith("retry: ")
        with psycopg.connect(desk.app.url, autocommit=True) as other:
            assert other.execute(_END).fetchall()
        desk.app.operate.act(OperatorVerb.PAUSE, [job_id], "ann")
        assert next(parsed(lines)).kind == "paused"


def test_a_long_stream_begins_anew(sqlite_desk: Desk) -> None:
    limits = RequestLimits(stream_seconds=0.0, stream_poll_seconds=0.0)
    sqlite_desk.open(settings_with(sqlite_desk.folder), limits)
    assert told(sqlite_desk.get("/api/events")) == []


def test_a_silent_stream_says_that_it_lives(sqlite_desk: Desk) -> None:
    limits = RequestLimits(stream_seconds=0.05, stream_silent_seconds=0.0, stream_poll_seconds=0.01)
    sqlite_desk.open(settings_with(sqlite_desk.folder), limits)
    assert ": nothing new\n\n" in sqlite_desk.get("/api/events").text
