"""The filter of a search text: see `model/search.py` for its language."""

from __future__ import annotations

import msgspec

from freehold.errors import BadInput
from freehold.model.search import parse
from freehold.operations.input_checks import check_filter
from freehold.store.statements import Verb, method
from freehold.store.types import JobFilter
from freehold.store.verbs import queries

_EVERY_JOB = JobFilter()


def search(text: str, filter: JobFilter = _EVERY_JOB) -> Verb[JobFilter]:
    """The filter of a search such as ``state:failed queue:mail since:2h``. Ages are subtracted from
    the store's clock. ``filter``: what was chosen beside the text, in other fields."""
    fields = parse(text, (yield from queries.now()))
    for name in fields:
        if getattr(filter, name) != getattr(_EVERY_JOB, name):
            raise BadInput(f"{name} was given twice: in the search and beside it")
    found = msgspec.structs.replace(filter, **fields)
    check_filter(found)
    return found


class SearchActions:
    search = method(search)
