"""A plain function reads its stop from ctx.canceled; its return value shows whether it stopped."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from freehold import Context, State
from freehold.model.operator_actions import OperatorVerb
from tests.worker.local_worker import LocalWorker


@pytest.mark.requirement("S4.5", "S4.6")
@pytest.mark.parametrize(("returned", "state"), [(None, State.CANCELED), ("all", State.SUCCEEDED)])
@pytest.mark.either_store
def test_a_function_that_returns_none_after_its_stop_has_stopped(
    local_worker: LocalWorker, returned: Any, state: State
) -> None:
    started = threading.Event()

    def waits_for_its_stop(ctx: Context) -> Any:
        started.set()
        while not ctx.canceled:
            threading.Event().wait(0.01)
        return returned

    job_id = local_worker.add(waits_for_its_stop)
    canceler = threading.Thread(target=_cancel, args=(local_worker, job_id, started))
    canceler.start()
    local_worker.run(request_poll_seconds=0.1)
    canceler.join()
    job = local_worker.job(job_id)
    assert job.state is state
    if state is State.CANCELED:
        assert job.reason == "enough"


def _cancel(local_worker: LocalWorker, job_id: int, started: threading.Event) -> None:
    assert started.wait(20)
    result = local_worker.app._client.store.operate(OperatorVerb.CANCEL, [job_id], "ann", "enough")[
        0
    ]
    assert result.status == "requested"


@pytest.mark.requirement("S4.5")
@pytest.mark.either_store
def test_a_function_that_never_read_its_stop_has_finished(local_worker: LocalWorker) -> None:
    started, proceed = threading.Event(), threading.Event()

    def never_checks(ctx: Context) -> None:
        started.set()
        assert proceed.wait(20)

    job_id = local_worker.add(never_checks)

    def cancel() -> None:
        _cancel(local_worker, job_id, started)
        proceed.set()

    canceler = threading.Thread(target=cancel)
    canceler.start()
    local_worker.run(request_poll_seconds=0.1)
    canceler.join()
    assert local_worker.job(job_id).state is State.SUCCEEDED
