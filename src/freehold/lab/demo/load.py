"""The demo's load: a repeated mix of simulated kinds, a quarter of the jobs in lanes."""

from __future__ import annotations

from typing import NamedTuple

from freehold.app import Freehold
from freehold.lab.demo.tasks import PREFIX
from freehold.model.job import NewJob

#: Names of the demo's own, because the given database may have other queues.
MAIL, REPORTS, ACCOUNTS = "demo-mail", "demo-reports", "demo-accounts"
QUEUES = (MAIL, REPORTS, ACCOUNTS)
#: The number of jobs in each lane.
_LANE_LENGTH = 8


class DemoJob(NamedTuple):
    """The kind and queue of one job. Jobs of ACCOUNTS are in lanes."""

    kind: str
    queue: str


_DEMO_JOBS = (
    DemoJob("steady", REPORTS),
    DemoJob("quick", ACCOUNTS),
    DemoJob("quick", MAIL),
    DemoJob("steady", REPORTS),
    DemoJob("flaky", MAIL),
    DemoJob("quick", ACCOUNTS),
    DemoJob("steady", REPORTS),
    DemoJob("quick", MAIL),
    DemoJob("broken", MAIL),
    DemoJob("steady", ACCOUNTS),
    DemoJob("steady", REPORTS),
    DemoJob("quick", MAIL),
    DemoJob("steady", REPORTS),
    DemoJob("flaky", ACCOUNTS),
    DemoJob("refusing", MAIL),
    DemoJob("steady", REPORTS),
    DemoJob("flaky", MAIL),
    DemoJob("quick", ACCOUNTS),
    DemoJob("quick", MAIL),
    DemoJob("steady", REPORTS),
)


def prepare(app: Freehold, count: int) -> list[NewJob]:
    """Returns this many jobs, with all kinds evenly distributed."""
    templates = [_DEMO_JOBS[number % len(_DEMO_JOBS)] for number in range(count)]
    in_lanes = sum(template.queue == ACCOUNTS for template in templates)
    lanes = max(1, in_lanes // _LANE_LENGTH)
    jobs: list[NewJob] = []
    lane_jobs = 0
    for number, template in enumerate(templates):
        task = app.tasks.get(PREFIX + template.kind).using(queue=template.queue)
        if template.queue == ACCOUNTS:
            task = task.using(target=f"account-{lane_jobs % lanes + 1}")
            lane_jobs += 1
        jobs.append(task.prepare(number))
    return jobs
