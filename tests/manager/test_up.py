"""`freehold up`: one manager per store and name; it stops by drain, faster by a second signal."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import pytest

from freehold.manager.spawn import starter
from freehold.model.state import State
from tests.docs.curl import curl_in
from tests.manager.load_app import naps, variable, waits
from tests.manager.service import Service
from tests.processes import arguments_of
from tests.worker.fleet import eventually

PASSWORD = "a-secret-password"


@pytest.mark.requirement("S4.11", "S2.11")
@pytest.mark.either_store
def test_a_stop_drains_all_workers_and_interrupts_nothing(service: Service) -> None:
    gate = service.folder / "gate"
    up = service.up()
    ids = [waits.enqueue(str(gate)).id for _ in range(4)]
    eventually(lambda: all(service.record.starts(job_id) for job_id in ids))
    up.send(signal.SIGTERM)
    eventually(lambda: {worker.state for worker in service.registered()} == {"draining"})
    waiting = naps.enqueue(0.01).id
    gate.touch()
    assert up.ended() == 0
    assert service.worker_pids() == []
    service.nothing_was_interrupted(ids)
    assert service.record.starts(waiting) == []


@pytest.mark.requirement("S4.11")
@pytest.mark.either_store
def test_a_second_signal_stops_running_jobs_and_nothing_stays_leased(service: Service) -> None:
    up = service.up()
    job_id = waits.enqueue(str(service.folder / "never")).id
    eventually(lambda: service.record.starts(job_id))
    up.send(signal.SIGINT)
    eventually(lambda: "draining" in {worker.state for worker in service.registered()})
    assert "another SIGTERM or Ctrl-C stops them at once" in service.log_text()
    up.send(signal.SIGTERM)
    assert up.ended() == 0
    assert service.app._client.store.read([job_id])[job_id].state is State.QUEUED


def test_a_second_manager_of_the_same_name_is_refused(sqlite_service: Service) -> None:
    service = sqlite_service
    service.up()
    service.until_registered(2)
    assert service.up().ended() == 1
    assert "give this one another --name" in service.log_file.read_text()
    other = service.up("--name", "other", "--default-count", "1")
    service.until_registered(3)
    other.send(signal.SIGTERM)
    assert other.ended() == 0
    service.until_workers(2)


@pytest.mark.requirement("S2.10")
def test_bad_bounds_are_refused_before_anything_is_started(sqlite_service: Service) -> None:
    assert sqlite_service.up("--default-count", "9").ended() == 2
    assert "workers.max_count = 8" in sqlite_service.log_file.read_text()


def test_a_store_without_its_schema_is_refused_at_once(
    postgres_service: Service, postgres_url: str
) -> None:
    service = postgres_service
    assert service.up(FREEHOLD_URL=postgres_url, FREEHOLD_SCHEMA="elsewhere").ended() == 3
    assert "freehold migrate" in service.log_file.read_text()


def test_the_stores_url_is_in_no_argument_of_any_process(postgres_service: Service) -> None:
    service = postgres_service
    url = service.url.replace("postgresql:///", f"postgresql://postgres:{PASSWORD}@/", 1)
    url = url.replace("&user=postgres", "")
    assert PASSWORD in url
    service.up(FREEHOLD_URL=url)
    service.until_registered(2)
    listing = "\n".join(arguments_of())
    assert "freehold worker" in listing
    assert PASSWORD not in listing
    assert PASSWORD not in service.log_file.read_text()
    assert not any(PASSWORD in path.name for path in service.folder.rglob("*"))


def test_a_manager_whose_folder_is_removed_ends_and_its_workers_drain(
    sqlite_service: Service,
) -> None:
    service = sqlite_service
    up = service.up()
    service.until_registered(2)
    (folder,) = service.folder.glob("freehold/*-default")
    shutil.rmtree(folder)
    assert up.ended() == 1
    assert "was removed while the manager ran: start it again" in service.log_file.read_text()
    service.until_workers(0)


@pytest.mark.requirement("S2.11")
@pytest.mark.either_store
def test_the_api_is_served_beside_the_manager(service: Service) -> None:
    up = service.up()
    served = eventually(lambda: re.findall(r"served on (http://[0-9.:]+)", service.log_text()))
    address = served[0]
    with urllib.request.urlopen(f"{address}/livez", timeout=120) as answer:
        assert answer.status == 200
    service.until_registered(2)
    token = (service.folder / "freehold" / "api-token").read_text().strip()
    request = urllib.request.Request(
        f"{address}/api/workers", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        assert len(json.load(answer)["workers"]) == 2
    assert token not in service.log_text()
    up.send(signal.SIGTERM)
    assert up.ended() == 0


def test_denied_requests_to_a_service_are_counted_in_its_metrics(sqlite_service: Service) -> None:
    sqlite_service.up("--default-count", "1")
    served = eventually(
        lambda: re.findall(r"served on (http://[0-9.:]+)", sqlite_service.log_text())
    )
    with pytest.raises(HTTPError, match="401"):
        urllib.request.urlopen(f"{served[0]}/api/stats", timeout=120)
    token = (sqlite_service.folder / "freehold" / "api-token").read_text().strip()
    request = urllib.request.Request(
        f"{served[0]}/metrics", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        assert 'freehold_http_denied_total{status="401"} 1\n' in answer.read().decode()


def test_the_logged_command_signs_in(sqlite_service: Service, tmp_path: Path) -> None:
    sqlite_service.up("--default-count", "1")
    (line,) = eventually(lambda: sqlite_service.logged("try: curl"))
    command = line["message"].removeprefix("try: ").replace("curl ", "curl -s ")
    environment = {**os.environ, **curl_in(tmp_path)}
    printed = subprocess.check_output(["sh", "-c", command], env=environment, timeout=120)
    assert "ready" in json.loads(printed)["counts"]


def test_local_access_needs_no_token(sqlite_service: Service) -> None:
    sqlite_service.up("--default-count", "1", FREEHOLD_HTTP_TOKENS="local")
    served = eventually(
        lambda: re.findall(r"served on (http://[0-9.:]+)", sqlite_service.log_text())
    )
    with urllib.request.urlopen(f"{served[0]}/api/stats", timeout=120) as answer:
        assert answer.status == 200
    assert not (sqlite_service.folder / "freehold" / "api-token").exists()


def test_a_taken_port_is_bad_input_and_starts_nothing(sqlite_service: Service) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert sqlite_service.up("--port", port).ended() == 2
    assert "choose another http.host or http.port" in sqlite_service.log_file.read_text()
    assert sqlite_service.worker_pids() == []


def test_a_second_manager_on_the_same_port_reports_the_first(sqlite_service: Service) -> None:
    sqlite_service.up("--default-count", "1")
    served = eventually(
        lambda: re.findall(r"served on http://127.0.0.1:([0-9]+)", sqlite_service.log_text())
    )
    assert sqlite_service.up("--port", served[0]).ended() == 1
    assert "give this one another --name" in sqlite_service.log_text()


def test_without_http_nothing_listens(sqlite_service: Service) -> None:
    up = sqlite_service.up("--no-http", "--default-count", "1")
    sqlite_service.until_registered(1)
    assert "served on" not in sqlite_service.log_text()
    up.send(signal.SIGTERM)
    assert up.ended() == 0


@pytest.mark.requirement("S4.2")
def test_workers_of_a_tenants_service_run_jobs_of_that_tenant_only(sqlite_service: Service) -> None:
    service = sqlite_service
    service.app.tenants.create("acme")
    acme = service.app.tenant("acme")
    untenanted = naps.enqueue(0.0).id
    service.up("--tenant", "acme", "--default-count", "1")
    tenanted = acme._submit(naps.prepare(0.0)).id
    eventually(lambda: acme._client.store.read([tenanted])[tenanted].state is State.SUCCEEDED)
    assert [worker.state for worker in acme.operator.workers()] == ["working"]
    assert service.app._client.store.read([untenanted])[untenanted].state is State.QUEUED


def test_workers_do_not_get_the_tokens_of_the_api(sqlite_service: Service) -> None:
    tokens = "admin:env:ADMIN_TOKEN"
    sqlite_service.up("--default-count", "1", FREEHOLD_HTTP_TOKENS=tokens, ADMIN_TOKEN=PASSWORD)
    job_id = variable.enqueue("ADMIN_TOKEN").id
    eventually(lambda: sqlite_service.all_succeeded([job_id]))
    report = sqlite_service.app._client.store.read([job_id])[job_id].report
    assert report is not None
    assert report.result is None


def test_workers_import_no_module_of_the_current_folder_in_place_of_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "msgspec.py").write_text("open('imported', 'w')")
    monkeypatch.chdir(tmp_path)
    with open(os.devnull) as file:  # noqa: PTH123
        process = starter(["--help"], {})((), file.fileno())
    assert eventually(lambda: process.poll() is not None)
    assert [path.name for path in tmp_path.iterdir()] == ["msgspec.py"]
    assert process.poll() == 0
