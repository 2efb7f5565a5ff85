"""Processes that use one file: workers and producers.

Run as `python -m tests.store_sqlite.client_process ROLE PATH ...`; prints its result.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from freehold.model.job import NewJob
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.sqlite.database import SqliteDatabase
from freehold.store.store import Store
from freehold.store.types import AttemptEnd, ClaimRequest, QueueDemand

BATCH = 10
SUCCESS = Outcome(kind=OutcomeKind.SUCCESS)


def claim_request(owner: str) -> ClaimRequest:
    return ClaimRequest(owner=owner, lease_seconds=600.0, demands=(QueueDemand("default", BATCH),))


def work(path: Path, owner: str) -> list[int]:
    """Claim and finish until the queue is empty. Returns the ids of the jobs done here."""
    database = SqliteDatabase(path)
    store = Store(database.session())
    wait_for_start()
    done: list[int] = []
    while attempts := store.claim(claim_request(owner)):
        result = store.finish(owner, [AttemptEnd(attempt, SUCCESS) for attempt in attempts])
        assert not result.lost
        done += result.decisions
    database.close()
    return done


def produce(path: Path, count: int) -> list[int]:
    """Enqueue one by one. Returns the ids."""
    database = SqliteDatabase(path)
    store = Store(database.session())
    wait_for_start()
    ids = [store.enqueue([NewJob(task="t")])[0].id for _ in range(count)]
    database.close()
    return ids


def produce_for_ever(path: Path) -> None:
    """Print every id once its job is acknowledged, until killed."""
    store = Store(SqliteDatabase(path).session())
    while True:
        for each in store.enqueue([NewJob(task="t")] * 3):
            print(each.id, flush=True)


def open_files(folder: Path, count: int) -> list[int]:
    """Open new files and enqueue a job into each; several processes do so at the same time."""
    wait_for_start()
    ids: list[int] = []
    for number in range(count):
        database = SqliteDatabase(folder / f"{number}.db")
        ids += [each.id for each in Store(database.session()).enqueue([NewJob(task="t")])]
        database.close()
    return ids


def wait_for_start() -> None:
    """The test starts all processes at once."""
    print("ready", flush=True)
    sys.stdin.readline()


def main(role: str, path: str, *rest: str) -> None:
    match role:
        case "work":
            result = work(Path(path), rest[0])
        case "produce":
            result = produce(Path(path), int(rest[0]))
        case "open":
            result = open_files(Path(path), int(rest[0]))
        case _:
            produce_for_ever(Path(path))
            return
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
