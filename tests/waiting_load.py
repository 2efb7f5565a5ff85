"""Load on keys that jobs hold until a worker takes them: many callers, workers that fail, die and
give back, and connections that are cut.

Each call has a number of its own as its argument, so that what ran can be compared with what was
asked for.
"""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import partial

import msgspec

from freehold.errors import StoreError
from freehold.model.job import Attempt, NewJob
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.waiting import Debounce, Throttle, Unique, WaitingOption, waiting_of
from freehold.store.database import Database
from freehold.store.store import Store
from freehold.store.types import AttemptEnd, ClaimRequest, QueueDemand

THROTTLE_SECONDS = 0.05
KEYS = ("a", "b")
MODES: tuple[Callable[[str], WaitingOption], ...] = (
    lambda key: Unique(key, "start"),
    lambda key: Unique(f"replaced {key}", "start", ("args", "run_at")),
    lambda key: Debounce(key, 0.01, 0.05),
    lambda key: Throttle(key, THROTTLE_SECONDS),
)
ENDINGS = (
    [OutcomeKind.SUCCESS] * 8
    + [OutcomeKind.ERROR] * 4
    + [OutcomeKind.SNOOZE, OutcomeKind.GIVE_BACK, None, None]  # None: the worker dies
)
_LEASE_SECONDS = 0.3


def new_job(option: WaitingOption, number: int) -> NewJob:
    delay = float(option.seconds) if isinstance(option, Debounce) else None  # type: ignore[arg-type]
    return NewJob(
        task="t",
        args=b'{"n":%d}' % number,
        delay_seconds=delay,
        max_attempts=30_000,
        waiting=waiting_of("t", option),
    )


class WaitingLoad:
    def __init__(
        self, database: Database, seed: int, callers: int, calls: int, *, cuts: int = 0
    ) -> None:
        """``calls`` of each caller at least, and until ``cuts`` connections were cut."""
        self.store = Store(database.session())
        self._least_cuts = cuts
        self.callers, self.calls, self.seed = callers, calls, seed
        self.working = threading.Event()
        self.working.set()
        self.cut = 0
        #: The arguments of each job as its workers got them.
        self.claimed: dict[int, set[str]] = defaultdict(set)
        self.ran: set[int] = set()
        self._numbers = iter(range(1, 10**9))
        self._lock = threading.Lock()

    def number(self) -> int:
        with self._lock:
            return next(self._numbers)

    def threads(self) -> list[Callable[[], None]]:
        callers = [partial(self._call, random.Random(self.seed + n)) for n in range(self.callers)]
        workers = [partial(self._work, f"w{n}", random.Random(-n)) for n in range(1, 4)]
        return [*callers, *workers, self._sweep]

    def _call(self, chance: random.Random) -> None:
        done = 0
        while done < self.calls or self.cut < self._least_cuts:
            done += 1
            option = chance.choice(MODES)(chance.choice(KEYS))
            with self._cuts_allowed():
                self.store.enqueue([new_job(option, self.number())])

    def _work(self, owner: str, chance: random.Random) -> None:
        demand = (QueueDemand("default", 3),)
        request = ClaimRequest(owner=owner, lease_seconds=_LEASE_SECONDS, demands=demand)
        while self.working.is_set():
            with self._cuts_allowed():
                attempts = self.store.claim(request)
                for attempt in attempts:
                    self.claimed[attempt.job_id].add(attempt.args)
                ends = [end for each in attempts if (end := _end(each, chance)) is not None]
                finished = self.store.finish(owner, ends)
                for end in ends:
                    succeeded = end.outcome.kind is OutcomeKind.SUCCESS
                    if succeeded and end.attempt.job_id in finished.decisions:
                        self.ran.add(msgspec.json.decode(end.attempt.args)["n"])

    def _sweep(self) -> None:
        while self.working.is_set():
            with self._cuts_allowed():
                self.store.make_ready(100)
                self.store.recover(100, 0.5)

    def _cuts_allowed(self) -> _Cuts:
        return _Cuts(self)

    def ask_once_more(self) -> set[int]:
        """One call for each key; returns their numbers, which must run."""
        numbers = set()
        for mode in MODES[1:]:
            for key in KEYS:
                numbers.add(number := self.number())
                self.store.enqueue([new_job(mode(key), number)])
        return numbers


class _Cuts:
    """Connections are cut on purpose; every other error fails the test."""

    def __init__(self, load: WaitingLoad) -> None:
        self._load = load

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        self._load.cut += isinstance(error, StoreError)
        return isinstance(error, StoreError)


def _end(attempt: Attempt, chance: random.Random) -> AttemptEnd | None:
    kind = chance.choice(ENDINGS)
    if kind is None:
        return None
    return AttemptEnd(attempt, Outcome(kind=kind, delay_seconds=chance.choice([0.0, 0.02])))
