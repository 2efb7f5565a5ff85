"""3b. An attempt succeeds inside its handler's own transaction.

The same fenced write as any other success. What the handler wrote and this are committed
together by whoever owns the transaction; if the lease was lost, the answer is False, and the
transaction must be rolled back.
"""

from __future__ import annotations

from freehold.store.statements import Verb, write
from freehold.store.types import AttemptEnd, LogChunk
from freehold.store.verbs.finish import finish
from freehold.store.verbs.job_log import append_log

#: Between the job's end and the commit there is nothing left to do but to commit.
COMMIT_SECONDS = 5.0


def finish_within(owner: str, ended: AttemptEnd, noted: LogChunk | None) -> Verb[bool]:
    yield from write("commit_soon", milliseconds=str(round(COMMIT_SECONDS * 1000)))
    if noted is not None:
        yield from append_log(owner, [noted])
    answer = yield from finish(owner, [ended])
    return ended.attempt.job_id in answer.decisions
