"""`freehold doctor`: checks of the store, and of jobs that cannot run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

import click

from freehold.app import Freehold
from freehold.cli.common import StoreChoice, StoreCommand, as_json, print_json, store_options
from freehold.cli.errors import REFUSED
from freehold.cli.render import bounded, diagnosis_table, show
from freehold.errors import FreeholdError
from freehold.model.limit import ALL_QUEUES
from freehold.model.plural import count
from freehold.model.worker_info import LiveWorker, WorkerState
from freehold.operator import Operator
from freehold.operator_schedules import ScheduleInfo, ScheduleState
from freehold.store.database import Diagnosis
from freehold.store.types import JobCounts, QueueInfo

_NAMES_SHOWN = 5
#: Between the store's clock at the fire and at this check.
_CLOCK_TOLERANCE = timedelta(seconds=5)


@click.command(cls=StoreCommand)
@click.option("--deep", is_flag=True, help="Also read the whole file of SQLite, to find damage.")
@as_json
@store_options
def doctor(store: StoreChoice, deep: bool, as_json: bool) -> None:
    """Check the store and its jobs. Exits with 1 if something is wrong."""
    with store.open() as app:
        diagnoses = [*app._database.diagnose(deep=deep), *_moves(app)]
        if all(each.good for each in diagnoses if each.name == "schema"):
            diagnoses += _job_checks(app.operator)
        where = app._database.shown
    good = all(each.good for each in diagnoses)
    if as_json:
        print_json({"store": where, "good": good, "diagnoses": diagnoses})
    else:
        show(diagnosis_table(where, diagnoses))
    if not good:
        raise click.exceptions.Exit(REFUSED)


def _moves(app: Freehold) -> list[Diagnosis]:
    """Moves of tenants whose process has died. A store that cannot be read has failed already."""
    try:
        found = app.tenants.interrupted_moves()
    except FreeholdError:
        return []
    return [Diagnosis("moves of tenants", good=False, detail=each) for each in found]


def _job_checks(operator: Operator) -> list[Diagnosis]:
    """Each by bounded reads: the number of jobs does not matter."""
    counts, all_paused = operator.counts(), operator.pause_of_all() is not None
    queues = [] if all_paused else operator.queues()
    return [
        *_stuck_jobs(counts),
        *_pauses(all_paused, queues),
        *_schedules(operator),
        *([] if all_paused else [_served(queues, operator.workers())]),
    ]


def _stuck_jobs(counts: JobCounts) -> Iterator[Diagnosis]:
    block = "job blocks its lane" if counts.failed == 1 else "jobs block their lanes"
    failed = (
        f"{bounded(counts.failed)} failed {block}: see freehold jobs --state failed, then resume "
        "or cancel"
    )
    yield Diagnosis("lanes", not counts.failed, failed if counts.failed else "no lane is blocked")
    wait = "job is" if counts.parked == 1 else "jobs are"
    parked = (
        f"{bounded(counts.parked)} {wait} parked, because a worker did not know the task or its "
        "code did not fit the arguments: see freehold job explain, then start a worker that fits"
    )
    yield Diagnosis("tasks", not counts.parked, parked if counts.parked else "no job is parked")


def _pauses(all_paused: bool, queues: Sequence[QueueInfo]) -> Iterator[Diagnosis]:
    """A pause is intended, and is no error."""
    paused = [queue.name for queue in queues if queue.paused]
    if all_paused:
        yield Diagnosis("pauses", True, "all queues are paused")
    elif paused:
        yield Diagnosis("pauses", True, f"paused: {_names(paused)}")


def _schedules(operator: Operator) -> Iterator[Diagnosis]:
    """Those that make no jobs although they should. The first page of them is enough."""
    found, now = operator.schedules(), operator.now()
    if not found:
        return
    wrong = [f"{each.name}: {each.problem}" for each in found if each.problem is not None]
    wrong += [
        f"{each.name} waits for job {each.skipped_for} ({each.skipped_for_state}) and has skipped "
        f"{count(each.skipped, 'tick')}: see freehold job explain {each.skipped_for}"
        for each in found
        if each.state is ScheduleState.SKIPPING
    ]
    wrong += [
        f"{each.name} rests until {each.last_at.isoformat()}, its last tick: the store's clock was "
        "set back"
        for each in found
        if each.last_at is not None and each.last_at > now + _CLOCK_TOLERANCE
    ]
    wrong += _unknown_tasks(found, operator.workers())
    good = f"{count(len(found), 'schedule')}, all of them can fire"
    yield Diagnosis("schedules", not wrong, "; ".join(wrong[:_NAMES_SHOWN]) if wrong else good)


def _unknown_tasks(found: Sequence[ScheduleInfo], workers: Sequence[LiveWorker]) -> Iterator[str]:
    known = {task for worker in workers for task in worker.tasks}
    for each in found:
        if workers and each.state is ScheduleState.ACTIVE and each.task not in known:
            yield f"{each.name}: no worker knows its task {each.task}"


def _served(queues: Sequence[QueueInfo], workers: Sequence[LiveWorker]) -> Diagnosis:
    served = {
        name for worker in workers if worker.state is WorkerState.WORKING for name in worker.queues
    }
    waiting = [queue.name for queue in queues if queue.ready and not queue.paused]
    unserved = [] if ALL_QUEUES in served else [name for name in waiting if name not in served]
    if not unserved:
        return Diagnosis("workers", True, "every queue with ready jobs has a worker")
    text = f"no worker serves {_names(unserved)}, where jobs are ready: start one"
    return Diagnosis("workers", False, text)


def _names(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join(names[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
