"""A plain function is asked to stop by ctx.canceled; how it returns says whether it did."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from freehold import Context, State
from freehold.model.operator_actions import OperatorVerb
from tests.worker.workshop import Workshop


@pytest.mark.requirement("S4.5", "S4.6")
@pytest.mark.parametrize(("returned", "state"), [(None, State.CANCELED), ("all", State.SUCCEEDED)])
def test_who_returns_nothing_after_the_stop_has_stopped(
    workshop: Workshop, returned: Any, state: State
) -> None:
    started = threading.Event()

    def waits_for_its_stop(ctx: Context) -> Any:
        started.set()
        while not ctx.canceled:
            threading.Event().wait(0.01)
        return returned

    job_id = workshop.add(waits_for_its_stop)
    canceler = threading.Thread(target=_cancel, args=(workshop, job_id, started))
    canceler.start()
    workshop.run(request_poll_seconds=0.1)
    canceler.join()
    job = workshop.job(job_id)
    assert job.state is state
    if state is State.CANCELED:
        assert job.reason == "enough"


def _cancel(workshop: Workshop, job_id: int, started: threading.Event) -> None:
    assert started.wait(20)
    answer = workshop.app.client.store.operate(OperatorVerb.CANCEL, [job_id], "ann", "enough")[0]
    assert answer.what == "requested"


@pytest.mark.requirement("S4.5")
def test_who_never_looked_has_finished(workshop: Workshop) -> None:
    started, go_on = threading.Event(), threading.Event()

    def never_looks(ctx: Context) -> None:
        started.set()
        assert go_on.wait(20)

    job_id = workshop.add(never_looks)

    def cancel() -> None:
        _cancel(workshop, job_id, started)
        go_on.set()

    canceler = threading.Thread(target=cancel)
    canceler.start()
    workshop.run(request_poll_seconds=0.1)
    canceler.join()
    assert workshop.job(job_id).state is State.SUCCEEDED
