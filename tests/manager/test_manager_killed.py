"""A manager killed with -9 kills no worker: its workers are taken over, or drain."""

from __future__ import annotations

import os
import signal

import pytest

from freehold.model.worker_info import WorkerState
from tests.manager.load_app import waits
from tests.manager.service import Service, WorkerCount
from tests.worker.fleet import eventually


@pytest.mark.requirement("S2.11", "S4.11")
@pytest.mark.either_store
def test_without_a_manager_idle_workers_end_and_busy_ones_finish_their_job_first(
    service: Service,
) -> None:
    gate = service.folder / "gate"
    up = service.up()
    service.until_registered(2)
    job_id = waits.enqueue(str(gate)).id
    eventually(lambda: service.record.starts(job_id))
    busy = service.record.starts(job_id)[0].pid
    up.kill()
    assert service.until_workers(1) == [busy]
    eventually(lambda: [w.state for w in service.registered()] == [WorkerState.DRAINING])
    gate.touch()
    service.until_workers(0)
    eventually(lambda: service.all_succeeded([job_id]))
    service.nothing_was_interrupted([job_id])
    assert service.registered() == []


@pytest.mark.requirement("S2.11")
@pytest.mark.either_store
def test_the_next_manager_takes_over_the_running_workers(service: Service) -> None:
    """The workers are frozen meanwhile, so that a slow machine does not matter."""
    gate = service.folder / "gate"
    service.environment["FREEHOLD_WORKERS_LEASE_TIMEOUT_SECONDS"] = "120"
    up = service.up("--default-count", "3")
    before = {worker.pid: worker.manager for worker in service.until_registered(3)}
    job_id = waits.enqueue(str(gate)).id
    eventually(lambda: service.record.starts(job_id))
    for pid in before:
        os.kill(pid, signal.SIGSTOP)
    up.kill()
    with WorkerCount(service) as counted:
        next_up = service.up("--default-count", "3")
        eventually(lambda: service.logged("took over 3 workers of a former manager"))
        for pid in before:
            os.kill(pid, signal.SIGCONT)

        def all_taken_over() -> bool:
            after = {worker.pid: worker.manager for worker in service.registered()}
            return after.keys() == before.keys() and not set(after.values()) & set(before.values())

        eventually(all_taken_over)
        # Signals reach them: a dead worker is replaced, and a stop drains all.
        victim = next(pid for pid in before if pid != service.record.starts(job_id)[0].pid)
        os.kill(victim, signal.SIGKILL)
        eventually(lambda: victim not in service.worker_pids())
        service.until_workers(3)
        next_up.send(signal.SIGTERM)
        gate.touch()
        assert next_up.ended() == 0
    assert service.worker_pids() == []
    assert counted.maximum == 3
    service.nothing_was_interrupted([job_id])


@pytest.mark.requirement("S2.9", "S2.11")
def test_draining_workers_count_so_that_there_are_never_too_many(sqlite_service: Service) -> None:
    """All slots are taken by draining workers: a new manager has to wait for them."""
    service = sqlite_service
    gate = service.folder / "gate"
    limits = ("--default-count", "1", "--max-count", "2")
    with WorkerCount(service) as counted:
        up = service.up(*limits)
        ids = [waits.enqueue(str(gate)).id for _ in range(4)]
        eventually(lambda: all(service.record.starts(job_id) for job_id in ids))
        assert len(service.worker_pids()) == 2
        up.kill()
        eventually(lambda: [w.state for w in service.registered()] == [WorkerState.DRAINING] * 2)
        service.up(*limits)
        eventually(lambda: service.logged("took over 2 workers of a former manager"))
        late = waits.enqueue(str(gate)).id
        old = set(service.worker_pids())
        gate.touch()
        eventually(lambda: service.all_succeeded([*ids, late]))
        assert service.record.starts(late)[0].pid not in old
    assert counted.maximum == 2
    service.nothing_was_interrupted([*ids, late])
