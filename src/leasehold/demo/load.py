"""The demo's load: simulated kinds dealt out like cards, a quarter of them in lanes."""

from __future__ import annotations

from typing import NamedTuple

from leasehold.app import Leasehold
from leasehold.demo.tasks import PREFIX
from leasehold.model.job import NewJob

#: Their names are the demo's own: a store that was given may have others.
MAIL, REPORTS, ACCOUNTS = "demo-mail", "demo-reports", "demo-accounts"
QUEUES = (MAIL, REPORTS, ACCOUNTS)
#: So many jobs of each lane follow each other.
_LANE_LENGTH = 8


class Card(NamedTuple):
    """What one job is: of which kind, and in which queue. Those of accounts stand in lanes."""

    kind: str
    queue: str


_DECK = (
    Card("steady", REPORTS), Card("quick", ACCOUNTS), Card("quick", MAIL), Card("steady", REPORTS),
    Card("flaky", MAIL), Card("quick", ACCOUNTS), Card("steady", REPORTS), Card("quick", MAIL),
    Card("broken", MAIL), Card("steady", ACCOUNTS), Card("steady", REPORTS), Card("quick", MAIL),
    Card("steady", REPORTS), Card("flaky", ACCOUNTS), Card("refusing", MAIL),
    Card("steady", REPORTS), Card("flaky", MAIL), Card("quick", ACCOUNTS), Card("quick", MAIL),
    Card("steady", REPORTS),
)  # fmt: skip


def prepare(app: Leasehold, count: int) -> list[NewJob]:
    """So many jobs in all, every kind at every time."""
    cards = [_DECK[number % len(_DECK)] for number in range(count)]
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
