"""Names, keys and reasons from outside: what each may contain."""

from __future__ import annotations

import re

from freehold.errors import BadInput, BadName

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,99}", re.ASCII)
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,47}", re.ASCII)
KEY_LENGTH_LIMIT = 200
#: Characters of an operator's or a handler's reason.
REASON_LIMIT = 500
#: Words that PostgreSQL does not accept as the unquoted name of a schema, and its own schema.
_RESERVED_WORDS = """
    all analyse analyze and any array as asc asymmetric authorization binary both case cast check
    collate collation column concurrently constraint create cross current_catalog current_date
    current_role current_schema current_time current_timestamp current_user default deferrable desc
    distinct do else end except false fetch for foreign freeze from full grant group having ilike in
    information_schema initially inner intersect into is isnull join lateral leading left like limit
    localtime localtimestamp natural not notnull null offset on only or order outer overlaps placing
    primary references returning right select session_user similar some symmetric system_user table
    tablesample then to trailing true union unique user using variadic verbose when where window
    with
"""
_RESERVED = frozenset(_RESERVED_WORDS.split())


def check_name(what: str, name: object) -> str:
    """Names of queues, tasks and tags: letters, digits and ``_ . : -``, at most 100."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise BadName(
        f"{what} {_shown(name)} is not a usable name: use 1 to 100 letters, digits, '_', '.', ':' "
        "or '-', starting with a letter, a digit or '_'"
    )


def check_schema(name: object) -> str:
    """Names of schemas. They are quoted into SQL, so their whitelist is the narrowest."""
    if isinstance(name, str) and name in _RESERVED:
        raise BadName(f"schema {name!r} is reserved by PostgreSQL: choose another name")
    if isinstance(name, str) and _SCHEMA.fullmatch(name) and not name.startswith("pg_"):
        return name
    raise BadName(
        f"schema {_shown(name)} is not a usable name: use 1 to 48 lower-case letters, digits or "
        "'_', starting with a letter or '_', and not with 'pg_'"
    )


def check_key(what: str, key: object) -> str:
    """Targets and keys: any printable text of at most 200 characters."""
    if isinstance(key, str) and 0 < len(key) <= KEY_LENGTH_LIMIT and key.isprintable():
        return key
    raise BadName(
        f"{what} {_shown(key)} cannot be used: give 1 to {KEY_LENGTH_LIMIT} printable characters"
    )


def check_reason(reason: str | None) -> str | None:
    if reason is None:
        return None
    if not isinstance(reason, str):
        raise BadInput(f"reason={reason!r}: give a string")
    if len(reason) > REASON_LIMIT or "\0" in reason:
        raise BadInput(f"a reason has at most {REASON_LIMIT} characters and no NUL")
    if any("\ud800" <= char <= "\udfff" for char in reason):
        raise BadInput("the reason is not Unicode text: write it in UTF-8")
    return reason


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
