"""Where the store is: an argument, else the environment, else a file in this folder."""

from __future__ import annotations

import os

from leasehold.store.opening import DEFAULT_FILE

URL_VARIABLES = ("LEASEHOLD_URL", "DATABASE_URL")
SCHEMA_VARIABLE = "LEASEHOLD_SCHEMA"
DEFAULT_SCHEMA = "leasehold"


def resolve_url(given: str | None) -> str:
    if given is not None:
        return given
    for name in URL_VARIABLES:
        if os.environ.get(name):
            return os.environ[name]
    return DEFAULT_FILE


def resolve_schema(given: str | None) -> str:
    return given or os.environ.get(SCHEMA_VARIABLE) or DEFAULT_SCHEMA
