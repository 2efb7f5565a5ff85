"""/metrics and /livez of a worker process."""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from freehold.errors import BadSettings
from freehold.http_auth import tokens_of
from freehold.prometheus import Metric, Sample, metrics_text, process_metrics
from freehold.telemetry import BUCKETS, COUNTERS, DURATIONS, Telemetry
from freehold.worker import select_server
from freehold.worker.metrics_server import MetricsServer
from tests.flood import Flood
from tests.processes import no_more_files
from tests.worker import fleet_app
from tests.worker.fleet import Fleet, WorkerProcess, eventually

SECRET = "a-token-chosen-by-chance"


def get(port: int, path: str, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("GET", path, headers={"Host": f"127.0.0.1:{port}", **headers})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def numbers(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """As Prometheus itself would read it."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def port_of(worker: WorkerProcess) -> int:
    found = eventually(lambda: re.findall(r"http://127\.0\.0\.1:(\d+)/metrics", worker.log))
    return int(found[0])


def plain(name: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return (name, frozenset())


@pytest.mark.requirement("S3.8")
def test_prometheus_can_read_every_counter() -> None:
    telemetry = Telemetry()
    telemetry.count("claimed", 3)
    telemetry.count("finished", 2, label="success")
    telemetry.count("store_errors", label='a "strange"\npart\\')
    telemetry.measure("claim_seconds", 0.001)  # the bound itself belongs to its bucket
    telemetry.measure("claim_seconds", 0.3)
    telemetry.measure("claim_seconds", 99.0)
    telemetry.watch("slots", lambda: 10)
    found = numbers(metrics_text(process_metrics(telemetry)))
    assert found[plain("freehold_claimed_total")] == 3
    assert found[plain("freehold_recovered_total")] == 0
    assert found["freehold_finished_total", frozenset({("outcome", "success")})] == 2
    part = frozenset({("part", 'a "strange"\npart\\')})
    assert found["freehold_store_errors_total", part] == 1
    assert found[plain("freehold_slots")] == 10
    assert found[plain("freehold_claim_seconds_count")] == 3
    assert found[plain("freehold_claim_seconds_sum")] == pytest.approx(99.301)
    bucket = "freehold_claim_seconds_bucket"
    by_bound = {dict(labels)["le"]: n for (name, labels), n in found.items() if name == bucket}
    assert len(by_bound) == len(BUCKETS) + 1
    assert (by_bound["0.001"], by_bound["0.25"], by_bound["0.5"]) == (1, 1, 2)
    assert (by_bound["10.0"], by_bound["+Inf"]) == (2, 3)


@pytest.mark.requirement("S3.8")
def test_refused_writes_are_exported_with_the_write_that_was_refused() -> None:
    telemetry = Telemetry()
    telemetry.count("stale_writes", 2, label="append_log")
    telemetry.count("stale_writes", label="finish")
    found = numbers(metrics_text(process_metrics(telemetry)))
    name = "freehold_stale_writes_total"
    assert {dict(labels)["write"]: n for (key, labels), n in found.items() if key == name} == {
        "append_log": 2,
        "finish": 1,
        "step": 0,
        "transaction": 0,
    }


def test_a_count_that_would_not_be_exported_is_refused() -> None:
    telemetry = Telemetry()
    with pytest.raises(AssertionError, match="claimed"):
        telemetry.count("claimed", label="default")
    with pytest.raises(AssertionError, match="finished"):
        telemetry.count("finished")


def test_every_metric_has_its_help() -> None:
    text = metrics_text(process_metrics(Telemetry()))
    helps = dict(re.findall(r"^# HELP freehold_(\S+) (.+)$", text, re.MULTILINE))
    assert set(helps) == {f"{name}_total" for name in COUNTERS} | set(DURATIONS)


def test_a_metric_without_numbers_is_still_described() -> None:
    text = metrics_text([Metric("queue_ready", "gauge", "jobs", [])])
    assert text == "# HELP freehold_queue_ready jobs\n# TYPE freehold_queue_ready gauge\n"
    text = metrics_text([Metric("queue_ready", "gauge", "jobs", [Sample(1, (("queue", "a"),))])])
    assert text.endswith('freehold_queue_ready{queue="a"} 1\n')


@pytest.mark.requirement("S3.8")
@pytest.mark.either_store
def test_a_worker_serves_its_counters_slots_and_durations(fleet: Fleet) -> None:
    worker = fleet.start("--metrics-port", "0", "--concurrency", "3")
    long_job = fleet_app.holds.enqueue("x").id
    quick = fleet_app.quick.enqueue("x").id
    fleet.succeeded(quick)
    fleet.started(long_job)
    port = port_of(worker)
    assert get(port, "/livez") == (200, "alive\n")
    # The worker counts the end of a job after the store shows it.
    eventually(lambda: 'freehold_finished_total{outcome="success"}' in get(port, "/metrics")[1])
    status, text = get(port, "/metrics")
    assert status == 200
    found = numbers(text)
    assert found[plain("freehold_slots")] == 3
    assert found[plain("freehold_slots_running")] == 1
    assert found[plain("freehold_slots_waiting")] == 0
    assert found[plain("freehold_claimed_total")] == 2
    assert found["freehold_finished_total", frozenset({("outcome", "success")})] == 1
    claims = found[plain("freehold_claims_total")]
    assert found[plain("freehold_claim_seconds_count")] == claims
    assert found[plain("freehold_finish_seconds_count")] == 1
    assert found[plain("freehold_finish_seconds_sum")] > 0


def test_metrics_are_served_while_a_handler_blocks_the_event_loop(sqlite_fleet: Fleet) -> None:
    worker = sqlite_fleet.start("--metrics-port", "0", lease=30.0)
    sqlite_fleet.started(fleet_app.blocker.enqueue(60.0).id)
    port = port_of(worker)
    assert get(port, "/livez") == (200, "alive\n")
    assert numbers(get(port, "/metrics")[1])[plain("freehold_slots_running")] == 1


def test_foreign_origins_and_wrong_tokens_are_refused() -> None:
    tokens = tokens_of(["viewer:env:T"], {"T": SECRET})
    unguarded, guarded = (
        MetricsServer(Telemetry(), "127.0.0.1", 0),
        MetricsServer(Telemetry(), "127.0.0.1", 0, tokens),
    )
    try:
        assert get(unguarded.port, "/metrics")[0] == 200
        assert get(unguarded.port, "/metrics", Host="evil.example")[0] == 403
        assert get(unguarded.port, "/metrics", Origin="http://evil.example")[0] == 403
        assert get(unguarded.port, "/other")[0] == 404
        assert get(guarded.port, "/metrics")[0] == 401
        assert get(guarded.port, "/metrics", Authorization="Bearer wrong")[0] == 401
        assert get(guarded.port, "/metrics", Authorization=f"Bearer {SECRET}")[0] == 200
        assert get(guarded.port, "/livez", Authorization="Bearer wrong")[0] == 200
        assert get(guarded.port, "/livez")[0] == 200
    finally:
        unguarded.close()
        guarded.close()


def test_a_port_that_is_taken_and_an_address_that_is_open_are_refused() -> None:
    first = MetricsServer(Telemetry(), "127.0.0.1", 0)
    try:
        with pytest.raises(BadSettings, match=f"port {first.port} .*choose another"):
            MetricsServer(Telemetry(), "127.0.0.1", first.port)
    finally:
        first.close()
    with pytest.raises(BadSettings, match=r"set http\.tokens first"):
        MetricsServer(Telemetry(), "0.0.0.0", 0)


def test_the_command_refuses_an_open_address(sqlite_fleet: Fleet, tmp_path: Path) -> None:
    worker = sqlite_fleet.start("--metrics-port", "0", "--metrics-host", "0.0.0.0")
    assert worker.ended() == 2
    assert "set http.tokens first" in worker.log


def test_the_metrics_of_all_tenants_are_not_for_the_token_of_one() -> None:
    tokens = tokens_of(["viewer@acme:env:A", "viewer:env:T"], {"A": f"{SECRET}-a", "T": SECRET})
    of_all = MetricsServer(Telemetry(), "127.0.0.1", 0, tokens)
    of_acme = MetricsServer(Telemetry(), "127.0.0.1", 0, tokens, tenant="acme")
    of_other = MetricsServer(Telemetry(), "127.0.0.1", 0, tokens, tenant="other")
    acme, landlord = f"Bearer {SECRET}-a", f"Bearer {SECRET}"
    try:
        for server, status in ((of_all, 403), (of_acme, 200), (of_other, 403)):
            assert get(server.port, "/metrics", Authorization=acme)[0] == status
            assert get(server.port, "/metrics", Authorization=landlord)[0] == 200
    finally:
        for server in (of_all, of_acme, of_other):
            server.close()


@pytest.mark.requirement("S3.8")
def test_connections_cannot_use_up_a_workers_files(sqlite_fleet: Fleet) -> None:
    worker = sqlite_fleet.start("--metrics-port", "0", open_files=128)
    port = port_of(worker)
    with Flood(port, idle=200, trickling=200):
        assert get(port, "/livez") == (200, "alive\n")
        sqlite_fleet.succeeded(fleet_app.quick.enqueue("x").id)
        assert get(port, "/livez") == (200, "alive\n")
    assert worker.drain() == 0


@pytest.fixture
def served_port() -> Iterator[int]:
    server = MetricsServer(Telemetry(), "127.0.0.1", 0)
    try:
        yield server.port
    finally:
        server.close()


def test_a_client_has_one_deadline_for_its_whole_request(
    monkeypatch: pytest.MonkeyPatch, served_port: int
) -> None:
    monkeypatch.setattr(select_server, "REQUEST_SECONDS", 0.2)
    with Flood(served_port, idle=0, trickling=2) as flood:
        assert flood.until_closed() == b""


def test_a_new_connection_replaces_the_oldest(
    monkeypatch: pytest.MonkeyPatch, served_port: int
) -> None:
    monkeypatch.setattr(select_server, "REQUEST_SECONDS", 600.0)
    monkeypatch.setattr(select_server, "CONNECTIONS", 2)
    with Flood(served_port, idle=2, trickling=0) as flood:
        assert get(served_port, "/livez")[0] == 200
        assert flood.until_closed() == b""


def test_a_server_that_cannot_accept_waits_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, served_port: int
) -> None:
    monkeypatch.setattr(select_server, "_ACCEPT_ERROR_SECONDS", 0.05)
    with socket.socket() as client:
        with no_more_files():
            client.connect(("127.0.0.1", served_port))
            eventually(lambda: "cannot accept connections" in caplog.text)
        client.settimeout(120)
        client.sendall(b"GET /livez HTTP/1.0\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.0 200 ")
    assert caplog.text.count("cannot accept connections") == 1


@pytest.mark.parametrize(
    "request_", [b"\r\n\r\n", b"POST /metrics HTTP/1.1\r\n\r\n", b"x" * 20_000]
)
def test_a_bad_request_does_not_end_the_server(served_port: int, request_: bytes) -> None:
    with socket.create_connection(("127.0.0.1", served_port), 120) as client:
        client.sendall(request_)
        with contextlib.suppress(ConnectionError):
            assert b" 200 " not in client.recv(1000)
    assert get(served_port, "/livez")[0] == 200
