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
from tests.http.api_client import TIMEOUT_SECONDS, ApiClient, problem, served, settings_with

#: Ends all connections, and waits for each: until it has ended, it still looks usable.
_TERMINATE = """
select pg_terminate_backend(pid, 30000) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()
"""
#: All events that exist.
ALL = "/api/events?after=0&follow=false"


class ReceivedEvent(NamedTuple):
    id: int
    kind: str
    data: dict[str, Any]


def parsed(lines: Iterator[str]) -> Iterator[ReceivedEvent]:
    """Parses the stream as a browser does."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line:
            if "data" in fields:
                yield ReceivedEvent(int(fields["id"]), fields["event"], json.loads(fields["data"]))
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value


def received(response: httpx.Response) -> list[ReceivedEvent]:
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    return list(parsed(iter(response.text.split("\n"))))


@pytest.mark.requirement("S2.5")
def test_events_come_in_order_with_author_and_reason(client: ApiClient) -> None:
    job_id = client.add()
    client.post(f"/api/jobs/{job_id}/pause", {"reason": "line\nbreak", "by": "ann"})
    client.post(f"/api/jobs/{job_id}/resume")
    events = received(client.get(ALL))
    assert [(event.kind, event.data["job_id"]) for event in events] == [
        ("paused", job_id),
        ("resumed", job_id),
    ]
    assert events[0].data["reason"] == "line\nbreak"
    assert events[0].data["by"] == "ann (local)"
    assert [event.id for event in events] == sorted(event.data["id"] for event in events)


def test_a_client_continues_after_its_last_event(client: ApiClient) -> None:
    jobs = [client.add() for _ in range(3)]
    for job_id in jobs:
        client.act(OperatorVerb.PAUSE, job_id)
    first = received(client.get(ALL))[0]
    by_header = received(client.get(ALL, headers={"Last-Event-ID": str(first.id)}))
    by_query = received(client.get(f"/api/events?after={first.id}&follow=false"))
    assert [event.data["job_id"] for event in by_header] == jobs[1:]
    assert by_query == by_header


def test_without_a_position_the_stream_begins_now(client: ApiClient) -> None:
    client.act(OperatorVerb.PAUSE, client.add())
    assert received(client.get("/api/events?follow=false")) == []


@pytest.mark.parametrize(
    "position",
    ["", "x", "-1", "1.5", "٣", "9" * 19, "9" * 40, "0" * 20 + "9" * 100, "0" * 4400],
)
def test_an_invalid_position_is_refused(sqlite_client: ApiClient, position: str) -> None:
    response = sqlite_client.get("/api/events", headers={"Last-Event-ID": position.encode()})
    assert "Last-Event-ID" in problem(response, 422, "bad-input")


def test_events_arrive_while_they_happen(client: ApiClient) -> None:
    settings = settings_with(client.folder, port=0)
    job_id = client.add()
    client.act(OperatorVerb.PAUSE, job_id)
    with served(client.app, settings) as address, httpx.Client(timeout=TIMEOUT_SECONDS) as caller:
        with caller.stream("GET", f"{address}/api/events?after=0") as stream:
            events = parsed(stream.iter_lines())
            assert next(events).kind == "paused"
            client.app.operator.resume(job_id, by="ann")
            resumed = next(events)
            assert (resumed.kind, resumed.data["by"]) == ("resumed", "ann")
        client.app.operator.cancel(job_id, by="ann")
        again = {"Last-Event-ID": str(resumed.id)}
        with caller.stream("GET", f"{address}/api/events", headers=again) as stream:
            assert next(parsed(stream.iter_lines())).kind == "canceled"


def test_streams_end_properly_when_the_service_stops(sqlite_client: ApiClient) -> None:
    settings = settings_with(sqlite_client.folder, port=0)
    with httpx.Client(timeout=TIMEOUT_SECONDS) as caller:
        with served(sqlite_client.app, settings) as address:
            request = caller.build_request("GET", f"{address}/api/events")
            stream = caller.send(request, stream=True)
            lines = stream.iter_lines()
            assert next(lines).startswith("retry: ")
        assert list(parsed(lines)) == []  # ended, and not cut off
        stream.close()


def test_the_number_of_streams_is_limited(sqlite_client: ApiClient) -> None:
    settings = settings_with(sqlite_client.folder, port=0, stream_count=1)
    with (
        served(sqlite_client.app, settings) as address,
        httpx.Client(timeout=TIMEOUT_SECONDS) as caller,
    ):
        with caller.stream("GET", f"{address}/api/events") as stream:
            lines = stream.iter_lines()  # kept: httpx closes the stream with the iterator
            assert next(lines).startswith("retry: ")
            assert "the limit of 1 event stream is reached" in problem(
                caller.get(f"{address}/api/events"), 503, "too-many-streams"
            )
        # The stream that ended makes room as soon as the service has noticed.
        while (response := caller.get(f"{address}{ALL}")).status_code == 503:
            pass
        assert response.status_code == 200


def test_a_stream_survives_lost_connections_of_the_store(postgres_client: ApiClient) -> None:
    client = postgres_client
    job_id = client.add()
    with (
        served(client.app, settings_with(client.folder, port=0)) as address,
        httpx.Client(timeout=TIMEOUT_SECONDS) as caller,
        caller.stream("GET", f"{address}/api/events") as stream,
    ):
        lines = stream.iter_lines()
        assert next(lines).startswith("retry: ")
        with psycopg.connect(client.app.url, autocommit=True) as other:
            assert other.execute(_TERMINATE).fetchall()
        client.app.operator.pause(job_id, by="ann")
        assert next(parsed(lines)).kind == "paused"


def test_a_stream_ends_after_its_maximum_time(sqlite_client: ApiClient) -> None:
    limits = RequestLimits(stream_seconds=0.0, stream_poll_seconds=0.0)
    sqlite_client.open(settings_with(sqlite_client.folder), limits)
    assert received(sqlite_client.get("/api/events")) == []


def test_a_silent_stream_sends_comments(sqlite_client: ApiClient) -> None:
    limits = RequestLimits(stream_seconds=0.05, stream_silent_seconds=0.0, stream_poll_seconds=0.01)
    sqlite_client.open(settings_with(sqlite_client.folder), limits)
    assert ": nothing new\n\n" in sqlite_client.get("/api/events").text
