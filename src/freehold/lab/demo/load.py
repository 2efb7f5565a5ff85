"""The demo's load: simulated kinds dealt out like cards, a quarter of them in lanes."""

from __future__ import annotations

from typing import NamedTuple

from freehold.app import Freehold
from freehold.lab.demo.tasks import PREFIX
from freehold.model.job import NewJob

#: Their names are the demo's own: a store that was given may have others.
MAIL, REPORTS, ACCOUNTS = "demo-mail", "demo-reports", "demo-accounts"
QUEUES = (MAIL, REPORTS, ACCOUNTS)
#: So many jobs of each lane follow each other.
_LANE_LENGTH = 8


class DemoJob(NamedTuple):
    """What one job is: of which kind, and in which queue. Those of accounts stand in lanes."""

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
    """So many jobs in all, every kind at every time."""
    cards = [_DEMO_JOBS[number % len(_DEMO_JOBS)] for number in range(count)]
    in_lanes = sum(card.queue == ACCOUNTS for card in cards)
    lanes = max(1, in_lanes // _LANE_LENGTH)
    jobs: list[NewJob] = []
    dealt = 0
    for number, card in enumerate(cards):
        task = app.tasks.get(PREFIX + card.kind).using(queue=card.queue)
        if card.queue == ACCOUNTS:
            task = task.using(target=f"account-{dealt % lanes + 1}")
            dealt += 1
        jobs.append(task.prepare(number))
    return jobs
