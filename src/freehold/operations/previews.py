"""What a verb would do with chosen jobs, before it does it. `bulk.preview` does the same for a
filter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from freehold.errors import BadInput
from freehold.model.bulk import (
    Amendment,
    BulkPreview,
    BulkVerb,
    JobPreview,
    PreviewStatus,
    check_bulk,
)
from freehold.model.operator_actions import OperatorVerb
from freehold.operations.input_checks import checked_ids
from freehold.store.statements import Verb, method
from freehold.store.types import PAGE_LIMIT
from freehold.store.verbs import bulk

_VERBS = (*BulkVerb, OperatorVerb.SUBMIT)


class ActionPreview(msgspec.Struct, frozen=True):
    """The counts, and the preview of each job in the order of the ids."""

    counts: BulkPreview
    jobs: tuple[JobPreview, ...]


def preview(verb: str, ids: Sequence[int], changes: Amendment | None = None) -> Verb[ActionPreview]:
    """What the verb would do with these jobs now: each by its own rule, refused ones with the
    cause. Nothing is written."""
    if verb not in _VERBS:
        raise BadInput(f"{verb!r} is no verb for jobs: give one of {', '.join(_VERBS)}")
    if not 1 <= len(ids) <= PAGE_LIMIT:
        raise BadInput(f"{len(ids)} jobs: give 1 to {PAGE_LIMIT}")
    chosen = OperatorVerb.SUBMIT if verb == OperatorVerb.SUBMIT else BulkVerb(verb)
    if isinstance(chosen, BulkVerb):
        check_bulk(chosen, None, changes)
    jobs = yield from bulk.preview_jobs(chosen, list(dict.fromkeys(checked_ids(ids))), changes)
    return ActionPreview(_counted(jobs), tuple(jobs))


def _counted(jobs: Sequence[JobPreview]) -> BulkPreview:
    by_status = Counter(each.status for each in jobs)
    done = Counter(str(each.state) for each in jobs if each.status is PreviewStatus.DONE)
    refused = Counter(each.cause or "" for each in jobs if each.status is PreviewStatus.REFUSED)
    return BulkPreview(
        len(jobs),
        dict(done),
        by_status[PreviewStatus.REQUESTED],
        by_status[PreviewStatus.ALREADY],
        dict(refused),
    )


class PreviewActions:
    preview = method(preview)
