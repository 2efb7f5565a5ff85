"""The tree of exceptions, each with its status, its problem type and its exit code."""

from __future__ import annotations

import inspect
import re

import freehold.errors
from freehold.cli.errors import BAD_INPUT, REFUSED, STORE_UNAVAILABLE
from freehold.errors import BadInput, FreeholdError, StoreError
from freehold.http.problems import STATUS
from scripts.site.markdown import code, first_sentence, page, table

INTRO = """All errors of the package are one tree. A message contains what happened, to which job, and what to do. [Handlers
raise](../tasks.md#ctx) other exceptions to end a job; those are in [Python](python.md#exceptions-that-handlers-raise)."""


def errors_page() -> str:
    tree = inspect.cleandoc(freehold.errors.__doc__ or "").partition("\n\n")[2]
    rows = [
        [f"`{kind.__name__}`", first_sentence(kind.__doc__), *_numbers(kind)] for kind in errors()
    ]
    heads = ["class", "meaning", "HTTP status", "problem type", "exit code"]
    return page("Errors", INTRO, code(tree), table(heads, rows))


def errors() -> list[type[FreeholdError]]:
    return [
        kind
        for kind in vars(freehold.errors).values()
        if inspect.isclass(kind) and issubclass(kind, FreeholdError)
    ]


def _numbers(kind: type[FreeholdError]) -> list[str]:
    status = next(STATUS[base] for base in kind.__mro__ if base in STATUS)
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", kind.__name__).lower()
    exit_code = REFUSED
    if issubclass(kind, BadInput):
        exit_code = BAD_INPUT
    elif issubclass(kind, StoreError):
        exit_code = STORE_UNAVAILABLE
    return [str(status), "" if status == 500 else f"`{name}`", str(exit_code)]
