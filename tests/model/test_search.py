"""The search language of jobs."""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.errors import BadInput
from freehold.model.search import LENGTH_LIMIT, TERMS_LIMIT, parse
from freehold.model.state import State

NOW = datetime(2030, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", {}),
        ("  \n ", {}),
        ("state:failed", {"states": {State.FAILED}}),
        ("state:failed,canceled", {"states": {State.FAILED, State.CANCELED}}),
        ("-state:succeeded", {"states": set(State) - {State.SUCCEEDED}}),
        ("state:failed,paused -state:paused", {"states": {State.FAILED}}),
        (
            "queue:mail task:mail.send tag:eu",
            {"queue": "mail", "task": "mail.send", "tag": "eu"},
        ),
        ("lane:user:17", {"target": "user:17"}),
        ('lane:"user 17, \\"x\\" \\\\"', {"target": 'user 17, "x" \\'}),
        ('lane:a" b"c', {"target": "a bc"}),
        ("target:a/b", {"target": "a/b"}),
        ("error:TimeoutError worker:w1", {"error": "TimeoutError", "worker": "w1"}),
        ("meta.region:eu meta.n:7", {"meta": {"region": "eu", "n": 7}}),
        ("since:2h", {"created_since": NOW - timedelta(hours=2)}),
        ("until:2030-01-31T10:00Z", {"created_until": NOW - timedelta(hours=2)}),
        ("finished_since:1d", {"finished_since": NOW - timedelta(days=1)}),
    ],
)
def test_a_search_has_the_fields_of_a_filter(text: str, fields: dict[str, Any]) -> None:
    assert parse(text, NOW) == fields


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("failed", "did you mean state:failed?"),
        ("17", "freehold job show 17"),
        ("mail", "write queue:mail, task:mail"),
        ("quue:mail", "did you mean queue:?"),
        ("Queue:mail", "did you mean queue:?"),
        ("xyz:1", "give one of state, queue, task, lane"),
        ("state:faild", "did you mean failed?"),
        ("state:", "has no value: write state:VALUE"),
        ("state:,", "is no state"),
        ("-queue:mail", "only states can be excluded"),
        ("queue:a,b", "queue has one value; a value with a comma stands in quotes"),
        ("queue:a queue:b", "queue was given twice"),
        ("lane:a target:b", "target was given twice"),
        ("meta.a:1 meta.a:2", "was given twice"),
        ('lane:"a', "a quote has no end"),
        ('"', "a quote has no end"),
        ("since:yesterday", "is not a time"),
        ("since:2030-01-31T10:00", "has no time zone"),
        ("state:failed -state:failed", "no job can match"),
        ("x" * (LENGTH_LIMIT + 1), "give at most 2,000"),
        ("state:failed " * (TERMS_LIMIT + 1), "more than 30 terms"),
    ],
)
def test_a_wrong_search_is_refused_with_what_was_meant(text: str, meant: str) -> None:
    with pytest.raises(BadInput, match=re.escape(meant)):
        parse(text, NOW)


@given(st.text(st.sampled_from('state:failed,"\\ -queue\0é'), max_size=60))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with contextlib.suppress(BadInput):
        assert parse(text, NOW).keys() <= {"states", "queue"}


@given(st.text(max_size=50))
def test_a_quoted_value_is_read_as_it_is(value: str) -> None:
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    assert parse(f'lane:"{quoted}"', NOW) == {"target": value}
