"""A dead worker is replaced, a crashing one is restarted slowly, a stuck one is recycled."""

from __future__ import annotations

import os
import signal

import pytest

from freehold.model.history import EventKind
from tests.manager.load_app import AT_START_VARIABLE, naps, unstoppable, waits
from tests.manager.service import Service
from tests.worker.fleet import eventually


@pytest.mark.requirement("S2.11")
@pytest.mark.either_store
def test_a_killed_worker_is_replaced_and_its_jobs_run_again(service: Service) -> None:
    service.up()
    service.until_registered(2)
    ids = [naps.enqueue(0.5).id for _ in range(4)]
    eventually(lambda: any(service.record.starts(job_id) for job_id in ids))
    victim = service.record.lines()[0].pid
    os.kill(victim, signal.SIGKILL)
    eventually(lambda: victim not in service.worker_pids())
    assert victim not in service.until_workers(2)
    eventually(lambda: service.all_succeeded(ids))
    assert service.logged(f"worker process {victim} ")


@pytest.mark.requirement("S2.11")
def test_workers_that_crash_at_once_are_restarted_ever_more_slowly(sqlite_service: Service) -> None:
    service = sqlite_service
    broken = service.folder / "broken"
    broken.write_text("3")
    service.environment[AT_START_VARIABLE] = str(broken)
    service.up("--default-count", "1")
    eventually(lambda: len(service.logged("ended right after its start with code 3")) >= 3)
    waits = [
        float(line["message"].split("next start in ")[1].split()[0])
        for line in service.logged("ended right after its start")
    ]
    assert waits[:3] == [0.5, 1.0, 2.0]
    broken.unlink()
    service.until_registered(1)


@pytest.mark.requirement("S2.11")
def test_a_worker_with_a_handler_that_cannot_be_stopped_is_recycled(
    sqlite_service: Service,
) -> None:
    service = sqlite_service
    gate = service.folder / "gate"
    service.up("--default-count", "1")
    service.until_registered(1)
    stuck = unstoppable.enqueue(str(gate)).id
    eventually(lambda: service.record.starts(stuck))
    pid = service.record.starts(stuck)[0].pid
    eventually(lambda: pid not in service.worker_pids())
    (worker,) = service.until_registered(1)
    assert [worker.pid] == service.worker_pids()
    assert service.logged("asked to be replaced")


@pytest.mark.requirement("S2.11", "S2.1")
@pytest.mark.either_store
def test_after_a_kill_of_everything_a_new_service_finishes_the_jobs(service: Service) -> None:
    first = service.up()
    ids = [naps.enqueue(0.2).id for _ in range(40)]
    eventually(lambda: service.record.lines())
    for pid in (first.pid, *service.worker_pids()):
        os.kill(pid, signal.SIGKILL)
    first.kill()
    eventually(lambda: not service.worker_pids())
    assert not service.all_succeeded(ids)
    service.up()
    eventually(lambda: service.all_succeeded(ids))


@pytest.mark.requirement("S2.11")
@pytest.mark.either_store
def test_the_jobs_of_a_killed_worker_do_not_wait_for_the_end_of_its_lease(
    service: Service,
) -> None:
    """The manager has seen the process end, so no child and no thread of it can still write."""
    gate = service.folder / "gate"
    up = service.up(
        *("--default-count", "1", "--no-http"), FREEHOLD_WORKERS_LEASE_TIMEOUT_SECONDS="3600"
    )
    job_id = waits.enqueue(str(gate)).id
    first = eventually(lambda: service.record.starts(job_id))[0]
    dead = {worker.owner for worker in service.registered()}
    os.kill(first.pid, signal.SIGKILL)
    eventually(lambda: len(service.record.starts(job_id)) == 2)
    assert not dead & {worker.owner for worker in service.registered()}
    gate.touch()
    eventually(lambda: service.all_succeeded([job_id]))
    (event,) = service.app._client.store.events(job_id)
    assert event.kind is EventKind.LEASE_LOST
    up.send(signal.SIGTERM)
    assert up.ended() == 0
