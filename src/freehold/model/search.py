"""The search language of jobs, as people type it:

    state:failed,canceled queue:mail since:2h
    -state:succeeded lane:"user 17" meta.region:eu

A search has terms, separated by spaces; a job must match all of them. A value that contains a space
or a comma stands in quotes. Several states are separated by commas; a minus excludes states. Pure:
the result has the fields of a `JobFilter`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any, NamedTuple

from freehold.errors import BadInput
from freehold.model.meta import meta_of
from freehold.model.state import State
from freehold.model.time_text import parse_timestamp_or_age

LENGTH_LIMIT = 2_000
TERMS_LIMIT = 30

#: The key of a term, and the field of the filter.
_TEXTS = {
    "queue": "queue",
    "task": "task",
    "lane": "target",
    "target": "target",
    "tag": "tag",
    "error": "error",
    "worker": "worker",
}
_TIMES = {
    "since": "created_since",
    "until": "created_until",
    "finished_since": "finished_since",
    "finished_until": "finished_until",
}
_META = "meta."
_KEYS = ("state", *_TEXTS, *_TIMES)
_ALL = frozenset(State)
#: A term: key, colon, and a value with or without quotes, in which \" is a quote.
_TERM = re.compile(r'(-?)([^\s:"]*)(:?)((?:"(?:[^"\\]|\\.)*"|[^\s"])*)', re.DOTALL)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)


class _Term(NamedTuple):
    text: str
    is_excluded: bool
    key: str
    #: As typed, with its quotes.
    value: str


def parse(text: str, now: datetime) -> dict[str, Any]:
    """The fields of a filter. Ages are subtracted from ``now``. Raises BadInput with what was
    probably meant."""
    if len(text) > LENGTH_LIMIT:
        raise BadInput(f"the search has {len(text):,} characters: give at most {LENGTH_LIMIT:,}")
    fields: dict[str, Any] = {}
    for number, term in enumerate(_terms(text)):
        if number == TERMS_LIMIT:
            raise BadInput(f"the search has more than {TERMS_LIMIT} terms")
        for name, value in _fields_of(term, now).items():
            fields[name] = _joined(term, name, fields.get(name), value)
    if fields.get("states") == frozenset():
        raise BadInput("no job can match: the terms exclude every state")
    return fields


def _terms(text: str) -> Iterator[_Term]:
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        match = _TERM.match(text, position)
        assert match is not None  # every part of it may be empty
        if match.end() == position or (match.end() < len(text) and text[match.end()] == '"'):
            raise BadInput(f'{text[position:][:40]!r}: a quote has no end; write \\" for a quote')
        position = match.end()
        minus, key, colon, value = match.groups()
        if not colon:
            raise _without_key(match[0])
        yield _Term(match[0], bool(minus), key, value)


def _without_key(text: str) -> BadInput:
    word = text.removeprefix("-").lower()
    if word in set(State):
        return BadInput(f"{text!r} has no key: did you mean state:{word}?")
    if word.isdecimal():
        return BadInput(f"{text!r} has no key: a job is shown by `freehold job show {word}`")
    return BadInput(f"{text!r} has no key: write queue:{text}, task:{text}, lane:{text}, ...")


def _fields_of(term: _Term, now: datetime) -> dict[str, Any]:
    if not term.value:
        raise BadInput(f"{term.text!r} has no value: write {term.key}:VALUE")
    if term.key == "state":
        return {"states": _states(term)}
    if term.is_excluded:
        raise BadInput(f"{term.text!r}: only states can be excluded, such as -state:succeeded")
    if term.key in _TEXTS:
        return {_TEXTS[term.key]: _one_value(term)}
    if term.key in _TIMES:
        return {_TIMES[term.key]: _time(term, now)}
    if term.key.startswith(_META):
        return {"meta": meta_of([f"{term.key.removeprefix(_META)}={_one_value(term)}"])}
    raise BadInput(f"{term.text!r}: there is no {term.key!r}; {_meant(term.key, _KEYS, ':')}")


def _states(term: _Term) -> frozenset[State]:
    found = set()
    for word in _unquoted(term.value).split(","):
        if word not in set(State):
            meant = _meant(word, tuple(State))
            raise BadInput(f"{term.text!r}: {word!r} is no state; {meant}")
        found.add(State(word))
    return _ALL - found if term.is_excluded else frozenset(found)


def _meant(word: str, known: tuple[str, ...], suffix: str = "") -> str:
    close = get_close_matches(word.lower(), known, n=1)
    if close:
        return f"did you mean {close[0]}{suffix}?"
    return f"give one of {', '.join(known)}" + (f" or {_META}KEY" if suffix else "")


def _one_value(term: _Term) -> str:
    if "," in _QUOTED.sub("", term.value):
        raise BadInput(
            f"{term.text!r}: {term.key} has one value; a value with a comma stands in quotes"
        )
    return _unquoted(term.value)


def _unquoted(value: str) -> str:
    return _QUOTED.sub(lambda quoted: re.sub(r"\\(.)", r"\1", quoted[1]), value)


def _time(term: _Term, now: datetime) -> datetime:
    try:
        found = parse_timestamp_or_age(_unquoted(term.value))
    except BadInput as error:
        raise BadInput(f"{term.text!r}: {error}, or an age as 90s, 5m, 2h, 1d") from None
    return now - found if isinstance(found, timedelta) else found


def _joined(term: _Term, name: str, before: Any, value: Any) -> Any:
    """Terms about states restrict each other; metadata may have several keys."""
    if before is None:
        return value
    if name == "states":
        return before & value
    if name == "meta" and not before.keys() & value.keys():
        return before | value
    raise BadInput(f"{term.text!r}: {term.key} was given twice; a search has each of them once")
