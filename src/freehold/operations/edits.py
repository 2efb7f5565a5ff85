"""Edits of one job: amend a waiting one, or clone any with other arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias

import msgspec

from freehold.errors import BadInput
from freehold.model import payload
from freehold.model.audit import PYTHON
from freehold.model.bulk import Amendment, BulkVerb, check_bulk
from freehold.model.job import Enqueued, Job, NewJob
from freehold.model.meta import encode_meta
from freehold.model.operator_actions import ActionResult
from freehold.model.schedule import PREFIX
from freehold.model.secrets import HIDDEN
from freehold.operations.input_checks import author_of, checked_ids, existing
from freehold.store.statements import Verb, method
from freehold.store.verbs import amend as verbs

#: The key of the metadata of a clone that has the id of the old job.
CLONED_FROM = "cloned_from"
#: Raises BadArguments if the task is known and its signature does not accept the arguments.
ArgumentCheck: TypeAlias = Callable[[str, bytes], None]


class CloneChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What a clone has instead of the old job's values; None leaves them. ``args`` is JSON: one
    object by parameter name. Without ``run_at`` the clone is due at once."""

    args: str | None = None
    priority: int | None = None
    queue: str | None = None
    run_at: datetime | None = None
    max_attempts: int | None = None


_NO_CHANGES = CloneChanges()


def amend(
    *ids: int, changes: Amendment, by: str, reason: str | None = None, via: str = PYTHON
) -> Verb[list[ActionResult]]:
    """Change priority, queue, time or number of attempts of waiting jobs. All are checked before
    any is changed."""
    check_bulk(BulkVerb.AMEND, None, changes)
    author = author_of(by, via, reason)
    return (yield from verbs.amend(checked_ids(ids), changes, author))


def clone(
    job_id: int,
    changes: CloneChanges = _NO_CHANGES,
    *,
    by: str,
    reason: str | None = None,
    via: str = PYTHON,
    check: ArgumentCheck | None = None,
) -> Verb[Enqueued]:
    """A new job of the same task, with the arguments of the old one or others. It has the same
    lane, limit key, tags and policy, and no unique key; `meta.cloned_from` is the old job."""
    new = yield from preview_clone(job_id, changes, check=check)
    return (yield from verbs.clone(job_id, new, author_of(by, via, reason)))


def preview_clone(
    job_id: int, changes: CloneChanges = _NO_CHANGES, *, check: ArgumentCheck | None = None
) -> Verb[NewJob]:
    """The job that `clone` would store, after the same checks. Nothing is written."""
    job = yield from existing(job_id)
    amendment = Amendment(changes.priority, changes.queue, changes.run_at, changes.max_attempts)
    if amendment != Amendment():
        check_bulk(BulkVerb.AMEND, None, amendment)
    new = _clone_of(job, changes)
    if check is not None:
        check(new.task, new.args)
    return new


def _clone_of(job: Job, changes: CloneChanges) -> NewJob:
    args = job.args.encode()
    if changes.args is not None:
        values = payload.parse("the arguments", changes.args)
        if not isinstance(values, dict):
            raise BadInput("the arguments are no JSON object: give one object by parameter name")
        args = payload.encode("the arguments", values)
    _check_secrets(job, args)
    return NewJob(
        task=job.task,
        args=args,
        queue=changes.queue or job.queue,
        priority=job.priority if changes.priority is None else changes.priority,
        run_at=changes.run_at,
        target=job.target,
        limit_key=job.limit_key,
        max_attempts=changes.max_attempts or job.max_attempts,
        timeout_seconds=job.timeout_seconds,
        # A clone is no tick of the schedule that made the old job.
        tags=tuple(tag for tag in job.tags if not tag.startswith(PREFIX)),
        # It is no member of the flow of the old job, which would count its end.
        policy=replace(job.policy, flow=None, node=None, callback_of=None),
        meta_json=encode_meta({**job.meta, CLONED_FROM: job.id}),
    )


def _check_secrets(job: Job, args: bytes) -> None:
    """A `Job` has no secret values, so a clone cannot copy them."""
    values = payload.stored_object(args.decode()) or {}
    missing = [name for name in job.policy.secret_args if values.get(name, HIDDEN) == HIDDEN]
    if missing:
        raise BadInput(
            f"job {job.id} has secret arguments, which are not copied: give other arguments "
            f"with {', '.join(missing)}"
        )


class EditActions:
    amend = method(amend)
    clone = method(clone)
    preview_clone = method(preview_clone)
