"""Arguments stay out of logs, passwords out of logs and the list of processes."""

from __future__ import annotations

import json
import re
import signal
import urllib.request

import pytest

from freehold import NewJob
from freehold.model.state import State
from tests.processes import arguments_of
from tests.worker import fleet_app
from tests.worker.fleet import Fleet

ARGUMENT = "a-private-argument"
PASSWORD = "a-private-password"
TOKEN = "a-private-token-of-the-api"
JSON_LOG = ("--log-format", "json", "--log-level", "debug", "--shutdown-grace-seconds", "0")


@pytest.mark.requirement("S3.8")
@pytest.mark.either_store
def test_logs_are_json_and_never_hold_arguments(fleet: Fleet) -> None:
    first = fleet.start(*JSON_LOG, environment={"FREEHOLD_WORKERS_MISFIT_SECONDS": "0"})
    quick = fleet_app.quick.enqueue(ARGUMENT).id
    apart = fleet_app.dies.using(max_attempts=1).enqueue("9").id
    wrong = fleet.app._submit(NewJob(task="weigh", args=f'{{"grams": "{ARGUMENT}"}}'.encode())).id
    long_job = fleet_app.holds.enqueue(ARGUMENT).id
    fleet.succeeded(quick)
    fleet.until(apart, State.FAILED)
    fleet.until(wrong, State.FAILED)
    fleet.started(long_job)
    first.send(signal.SIGKILL)
    first.ended()
    second = fleet.start(*JSON_LOG)
    fleet.started(long_job, times=2)
    assert second.drain() == 0
    documents = [json.loads(line) for line in fleet.log.splitlines()]
    assert ARGUMENT not in fleet.log
    logged = [document for document in documents if document.get("job") == long_job]
    assert {document["task"] for document in logged} == {fleet_app.holds.name}
    assert all({"at", "level", "message"} <= document.keys() for document in documents)


@pytest.mark.requirement("S3.8")
def test_the_password_is_in_no_argument_of_any_process_and_in_no_log(
    postgres_fleet: Fleet,
) -> None:
    fleet = postgres_fleet
    url = fleet.url.replace("postgresql:///", f"postgresql://postgres:{PASSWORD}@/", 1)
    url = url.replace("&user=postgres", "")
    assert PASSWORD in url
    worker = fleet.start(*JSON_LOG, environment={"FREEHOLD_URL": url})
    fleet.started(fleet_app.apart.enqueue(60.0).id)  # with a child process
    listing = "\n".join(arguments_of())
    assert "freehold worker" in listing
    assert PASSWORD not in listing
    fleet.app.close()  # the connections of this test must not be terminated
    fleet.sql(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where application_name = 'freehold' and datname = current_database()"
    )
    fleet.succeeded(fleet_app.quick.enqueue().id)
    assert worker.drain() == 0
    assert PASSWORD not in worker.log


def test_handlers_do_not_get_the_tokens_of_the_environment(sqlite_fleet: Fleet) -> None:
    fleet = sqlite_fleet
    environment = {"FREEHOLD_HTTP_TOKENS": "viewer:env:METRICS_TOKEN", "METRICS_TOKEN": TOKEN}
    worker = fleet.start("--metrics-port", "0", environment=environment)
    ids = [
        fleet_app.variable.enqueue("METRICS_TOKEN").id,
        fleet_app.variable_in_a_child.enqueue("METRICS_TOKEN").id,
    ]
    for job_id in ids:
        report = fleet.succeeded(job_id).report
        assert report is not None
        assert report.result is None
    port = re.findall(r"http://127\.0\.0\.1:(\d+)/metrics", worker.log)[0]
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics")
    request.add_header("Authorization", f"Bearer {TOKEN}")
    with urllib.request.urlopen(request, timeout=120) as response:
        assert response.status == 200
