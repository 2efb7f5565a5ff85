"""/metrics and /livez of a worker process."""

from __future__ import annotations

import http.client
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from freehold.errors import BadSettings
from freehold.http_auth import tokens_of
from freehold.prometheus import Metric, Sample, metrics_text, process_metrics
from freehold.telemetry import BUCKETS, COUNTERS, DURATIONS, Telemetry
from freehold.worker.metrics_server import MetricsServer
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
def test_a_worker_serves_its_counters_slots_and_durations(fleet: Fleet) -> None:
    worker = fleet.start("--metrics-port", "0", "--concurrency", "3")
    long_job = fleet_app.holds.enqueue("x").id
    quick = fleet_app.quick.enqueue("x").id
    fleet.succeeded(quick)
    fleet.started(long_job)
    port = port_of(worker)
    assert get(port, "/livez") == (200, "alive\n")
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
