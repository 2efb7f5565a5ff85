"""3b. An attempt succeeds inside its handler's own transaction.

The same fenced write as any other success. What the handler wrote and this are committed
together by whoever owns the transaction; if the lease was lost, the answer is False, and the
transaction must be rolled back.
"""

from __future__ import annotations

from leasehold.store.contract import Ended, Noted
from leasehold.store.finishing import finish
from leasehold.store.noting import note
from leasehold.store.steps import Steps, write

#: Between the job's end and the commit there is nothing left to do but to commit.
COMMIT_SECONDS = 5.0


def finish_within(owner: str, ended: Ended, noted: Noted | None) -> Steps[bool]:
    yield from write("commit_soon", milliseconds=str(round(COMMIT_SECONDS * 1000)))
    if noted is not None:
        yield from note(owner, [noted])
    answer = yield from finish(owner, [ended])
    return ended.attempt.job_id in answer.decisions
