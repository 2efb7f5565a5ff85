"""What an operator's verbs check of their input: filters, authors, and the interface."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from freehold.errors import BadInput
from freehold.model.audit import Author
from freehold.model.job_log import check_reason
from freehold.model.meta import encode_meta
from freehold.model.names import check_key, check_name
from freehold.model.timestamps import check_timestamp
from freehold.store.statements import Verb
from freehold.store.types import JobFilter

P = ParamSpec("P")
T = TypeVar("T")

LARGEST_ID = 2**63 - 1


def check_filter(filter: JobFilter) -> None:
    for what in ("queue", "task", "tag"):
        if getattr(filter, what) is not None:
            check_name(what, getattr(filter, what))
    for what in ("target", "error", "worker"):
        if getattr(filter, what) is not None:
            check_key(what, getattr(filter, what))
    encode_meta(filter.meta)
    _check_range("created", filter.created_since, filter.created_until)
    _check_range("finished", filter.finished_since, filter.finished_until)
    if filter.before is not None and not 0 < filter.before <= LARGEST_ID:
        raise BadInput(f"before={filter.before}: give the `next` of the page before")


def _check_range(what: str, since: datetime | None, until: datetime | None) -> None:
    for name, at in ((f"{what}_since", since), (f"{what}_until", until)):
        if at is not None:
            check_timestamp(name, at)
    if since is not None and until is not None and since >= until:
        raise BadInput(
            f"{what}_since={since.isoformat()} is not before {what}_until={until.isoformat()}: "
            "no job can match"
        )


def author_of(by: str, via: str, reason: str | None = None) -> Author:
    return Author(check_key("by", by), via, check_reason(reason))


def bound(verb: Callable[P, Verb[T]], **given: Any) -> Callable[P, Verb[T]]:
    """A verb with those of these parameters that it has: one that changes something has the
    interface, ``via``, as its parameter."""
    names = signature(verb).parameters
    own = {name: value for name, value in given.items() if name in names}
    return partial(verb, **own) if own else verb
