"""`select * from freehold.enqueue(…)`: enqueueing from SQL."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import Connection
from psycopg.errors import InvalidParameterValue

from freehold.model import payload
from freehold.model.job import Enqueued, NewJob
from freehold.model.meta import encode_meta
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.state import Stage
from freehold.model.waiting import Debounce, Throttle, Unique, WaitingOption, waiting_of
from freehold.store.postgres.database import PostgresDatabase
from freehold.store.store import Store
from freehold.store.types import AttemptEnd, ClaimRequest, QueueDemand

TIME = datetime(2200, 1, 1, tzinfo=UTC)


@pytest.fixture
def sql(database: PostgresDatabase) -> Iterator[Connection[Any]]:
    """A client with a plain connection."""
    with psycopg.connect(database.url) as connection:
        yield connection


def enqueue(sql: Connection[Any], arguments: str) -> Enqueued:
    row = sql.execute(f"select * from freehold.enqueue({arguments})".encode()).fetchone()
    assert row is not None
    return Enqueued(*row)


def claim_request() -> ClaimRequest:
    return ClaimRequest(owner="w", lease_seconds=60.0, demands=(QueueDemand("default", 10),))


@pytest.mark.requirement("S0.18")
def test_the_job_exists_if_and_only_if_the_transaction_commits(
    sql: Connection[Any], queue: Store
) -> None:
    lost = enqueue(sql, "'send'")
    sql.rollback()
    kept = enqueue(sql, """'send', '{"to": "a@example.org"}'""")
    sql.commit()
    assert set(queue.read([lost.id, kept.id])) == {kept.id}
    attempt = queue.claim(claim_request())[0]
    assert (attempt.job_id, attempt.task, attempt.args) == (
        kept.id,
        "send",
        '{"to": "a@example.org"}',
    )


@pytest.mark.requirement("S0.18", "S0.14")
def test_its_jobs_equal_those_of_the_client(sql: Connection[Any], queue: Store) -> None:
    mine = queue.enqueue([NewJob(task="t", priority=3, target="lane", tags=("a",))])[0]
    theirs = enqueue(sql, """'t', priority => 3, target => 'lane', tags => '["a"]'""")
    sql.commit()
    jobs = queue.read([mine.id, theirs.id])
    one, two = jobs[mine.id], jobs[theirs.id]
    differ = {
        name
        for name in one.__struct_fields__
        if getattr(one, name) != getattr(two, name) and name not in ("created_at", "run_at")
    }
    assert differ == {"id"}
    assert [attempt.job_id for attempt in queue.claim(claim_request())] == [mine.id], (
        "one lane, one order"
    )


@pytest.mark.requirement("N6")
def test_its_metadata_equals_that_of_the_client(sql: Connection[Any], queue: Store) -> None:
    meta = {"a": 2**63 - 1, "é": "\U0001f600", "x": -1.5, "y": 1e300, "t": True, "n": None}
    text = encode_meta(meta)
    mine = queue.enqueue([NewJob(task="t", meta_json=text)])[0]
    theirs = enqueue(sql, f"'t', meta => '{text}'")
    none = [enqueue(sql, f"'t', meta => {empty}") for empty in ("'{ }'", "'null'", "null")]
    sql.commit()
    jobs = queue.read([mine.id, theirs.id, *(each.id for each in none)])
    assert jobs[mine.id].meta == jobs[theirs.id].meta == meta
    assert [jobs[each.id].meta for each in none] == [{}, {}, {}]
    stored = sql.execute("select id from freehold.job where meta is null order by id").fetchall()
    assert stored == [(each.id,) for each in none]


@pytest.mark.requirement("N4")
@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ("unique_key => 'k', unique_until => 'start'", Unique("k", "start")),
        (
            "unique_key => 'k', unique_until => 'start', replace => '{args,priority}'",
            Unique("k", "start", ("args", "priority")),
        ),
        (
            "debounce_key => 'k', debounce_seconds => 30, debounce_at_most_seconds => 60",
            Debounce("k", 30, 60),
        ),
        ("throttle_key => 'k', throttle_seconds => 60", Throttle("k", 60)),
    ],
    ids=["unique", "replace", "debounce", "throttle"],
)
def test_a_job_that_waits_is_the_same_for_sql_and_client(
    sql: Connection[Any], queue: Store, arguments: str, option: WaitingOption
) -> None:
    """They take turns on one key; each finds the job of the other."""
    delay = 30.0 if isinstance(option, Debounce) else None
    mine = NewJob(task="t", args=b'{"n":1}', delay_seconds=delay, waiting=waiting_of("t", option))
    replaces = not isinstance(option, Unique) or bool(option.replace)
    first = enqueue(sql, f"""'t', '{{"n":0}}', {arguments}""")
    sql.commit()
    assert (first.created, first.replaced) == (True, False)
    (again,) = queue.enqueue([mine])
    assert (again.id, again.created, again.replaced) == (first.id, False, replaces)
    assert again.created_at == first.created_at
    third = enqueue(sql, f"""'t', '{{"n":2}}', priority => 5, {arguments}""")
    sql.commit()
    assert (third.id, third.created, third.replaced) == (first.id, False, replaces)
    job = queue.read([first.id])[first.id]
    assert job.args == ('{"n":2}' if replaces else '{"n":0}')
    assert job.priority == (5 if isinstance(option, Unique) and option.replace else 0)
    assert job.waiting_key == mine.waiting.key if mine.waiting else None
    if isinstance(option, Throttle):
        assert queue.claim(claim_request())
        later = enqueue(sql, f"'t', {arguments}")
        sql.commit()
        assert queue.read([later.id])[later.id].run_at - job.run_at == timedelta(seconds=60)


@pytest.mark.requirement("S1.1")
def test_a_job_with_a_later_run_at_is_scheduled(sql: Connection[Any], queue: Store) -> None:
    later = enqueue(sql, "'t', run_at => now() + interval '1 hour'")
    past = enqueue(sql, "'t', run_at => now() - interval '1 hour'")
    sql.commit()
    jobs = queue.read([later.id, past.id])
    assert (jobs[later.id].stage, jobs[past.id].stage) == (Stage.SCHEDULED, Stage.READY)
    assert [attempt.job_id for attempt in queue.claim(claim_request())] == [past.id]


@pytest.mark.parametrize(
    ("arguments", "new"),
    [
        ("start_by => {at}", NewJob(task="t", start_by=TIME)),
        ("start_by_seconds => 90", NewJob(task="t", start_by=90.0)),
        (
            "start_by_seconds => 90, run_at => {at}, unique_key => 'k'",
            NewJob(task="t", start_by=90.0, run_at=TIME),
        ),
    ],
    ids=["time", "seconds", "seconds after run_at"],
)
def test_a_time_to_start_by_is_the_same_for_sql_and_client(
    sql: Connection[Any], queue: Store, arguments: str, new: NewJob
) -> None:
    theirs = enqueue(sql, "'t', " + arguments.format(at=f"'{TIME.isoformat()}'"))
    sql.commit()
    (mine,) = queue.enqueue([new])
    found = [queue.read([each.id])[each.id] for each in (theirs, mine)]
    times = [job.start_by for job in found if job.start_by is not None]
    if new.start_by == TIME:
        assert times == [TIME, TIME]
    else:
        assert [at - job.run_at for at, job in zip(times, found, strict=True)] == [
            timedelta(seconds=90)
        ] * 2


@pytest.mark.requirement("P9")
def test_keys_are_shared_with_the_client(sql: Connection[Any], queue: Store) -> None:
    first = enqueue(sql, "'t', unique_key => 'u', idempotency_key => 'i'")
    sql.commit()
    assert first.created
    again = Enqueued(first.id, False, False, first.created_at)
    assert enqueue(sql, "'t', unique_key => 'u'") == again
    assert enqueue(sql, "'t', idempotency_key => 'i'") == again
    assert queue.enqueue([NewJob(task="t", unique_key="u")]) == [again]
    assert queue.enqueue([NewJob(task="t", idempotency_key="i")]) == [again]
    finish_all(queue)
    ended = Enqueued(first.id, False)
    assert enqueue(sql, "'t', idempotency_key => 'i'") == ended, "remembered beyond its end"
    assert enqueue(sql, "'t', unique_key => 'u'").created, "free with its end"
    sql.commit()


@pytest.mark.requirement("P9")
def test_the_job_of_a_unique_key_is_remembered_under_the_idempotency_key(
    sql: Connection[Any], queue: Store
) -> None:
    holder = queue.enqueue([NewJob(task="t", unique_key="u")])[0]
    again = Enqueued(holder.id, False, False, holder.created_at)
    assert enqueue(sql, "'t', unique_key => 'u', idempotency_key => 'mine'") == again
    sql.commit()
    finish_all(queue)
    ended = Enqueued(holder.id, False)
    assert enqueue(sql, "'t', unique_key => 'u', idempotency_key => 'mine'") == ended


@pytest.mark.requirement("P9")
def test_an_expired_key_makes_a_new_job(sql: Connection[Any], queue: Store) -> None:
    first = enqueue(sql, "'t', idempotency_key => 'i'")
    sql.commit()
    sql.execute("update freehold.idempotency set expires_at = now() - interval '1 s'")
    assert not enqueue(sql, "'t', idempotency_key => 'i'").created, "while the job is live"
    sql.commit()
    finish_all(queue)
    second = enqueue(sql, "'t', idempotency_key => 'i'")
    sql.commit()
    assert second.created
    assert second.id != first.id


def finish_all(queue: Store) -> None:
    attempts = queue.claim(claim_request())
    success = Outcome(kind=OutcomeKind.SUCCESS)
    assert not queue.finish("w", [AttemptEnd(attempt, success) for attempt in attempts]).lost


BAD = {
    "the key of a schedule": (
        "'t', unique_key => 'schedule:books'",
        "keys that begin with schedule: are those of schedules",
    ),
    "the lane of a schedule": ("'t', target => 'schedule:books'", "are those of schedules"),
    "two times to start by": (
        "'t', start_by => now() + interval '1 h', start_by_seconds => 9",
        "start_by and start_by_seconds exclude each other",
    ),
    "a time to start by before its time": (
        "'t', start_by => now() + interval '1 h', run_at => now() + interval '1 h'",
        "start_by must be after run_at",
    ),
    "no seconds to start": ("'t', start_by_seconds => 0", "start_by_seconds must be from 0.001"),
    "no number of seconds to start": ("'t', start_by_seconds => 'NaN'", "must be from 0.001"),
    "a start at any time": ("'t', start_by => 'infinity'", "start_by must be a time"),
    "a start beyond the calendar": (
        "'t', run_at => '9999-12-01', start_by_seconds => 3e8",
        "start_by must be a time",
    ),
    "a debounce that must start": (
        "'t', debounce_key => 'k', debounce_seconds => 9, start_by_seconds => 9",
        "start_by excludes unique_until start, debounce and throttle",
    ),
    "no name": ("null", "task NULL is not a usable name"),
    "a name with a blank": ("'a b'", "is not a usable name"),
    "a name with a line's end": (r"E'a\n'", "is not a usable name"),
    "a long name": ("repeat('a', 101)", "is not a usable name"),
    "a bad queue": ("'t', queue => 'ä'", "queue .* is not a usable name"),
    "arguments that are a list": ("'t', '[1]'", "must be a JSON object"),
    "arguments that are null": ("'t', null", "must be a JSON object"),
    "a NUL": (r"""'t', '{"a": "\u0000"}'""", "NUL character"),
    "a NUL in a name": (r"""'t', '{"\u0000": 1}'""", "NUL character"),
    "too much": (
        "'t', json_build_object('a', repeat('x', 1048576))",
        "larger than 1,048,576 bytes",
    ),
    "a priority too high": ("'t', priority => 30001", "priority must be"),
    "no priority": ("'t', priority => null", "priority must be"),
    "no attempts": ("'t', max_attempts => 0", "max_attempts must be"),
    "no time": ("'t', timeout_seconds => 0", "timeout_seconds must be"),
    "a long key": ("'t', unique_key => repeat('x', 201)", "at most 200"),
    "a long target": ("'t', target => repeat('x', 201)", "at most 200"),
    "an empty key": ("'t', idempotency_key => ''", "cannot be empty"),
    "no end of time": ("'t', timeout_seconds => 'infinity'", "timeout_seconds must be"),
    "no number of seconds": ("'t', timeout_seconds => 'NaN'", "timeout_seconds must be"),
    "a time that never comes": ("'t', run_at => 'infinity'", "run_at must be"),
    "a time beyond the calendar": ("'t', run_at => '10000-01-01'", "run_at must be"),
    "half a character": (r"""'t', '{"a": "\ud800"}'""", "cannot be decoded"),
    "tags that are no list": ("'t', tags => '{}'", "tags"),
    "tags that are no text": ("'t', tags => '[1]'", "tags must be usable names"),
    "tags that are no names": ("""'t', tags => '["a b"]'""", "tags must be usable names"),
    "meta that is a list": ("'t', meta => '[1]'", "meta must be a flat JSON object"),
    "meta that is text": ("""'t', meta => '"a"'""", "meta must be a flat JSON object"),
    "nested meta": ("""'t', meta => '{"a": {"b": 1}}'""", "meta.'a'. is nested"),
    "a list in meta": ("""'t', meta => '{"a": []}'""", "meta.'a'. is nested"),
    "much meta": (
        "'t', meta => json_build_object('a', repeat('x', 4096))",
        "meta is larger than 4,096 bytes",
    ),
    "a NUL in meta": (r"""'t', meta => '{"a": "\u0000"}'""", "NUL character"),
    "half a character in meta": (r"""'t', meta => '{"a": "\ud800"}'""", "cannot be decoded"),
    "65 bits in meta": (
        """'t', meta => '{"a": 9223372036854775808}'""",
        "more than 64 bits: store it as text",
    ),
    "a huge number in meta": ("""'t', meta => '{"a": 1e400}'""", "number that is too large"),
    "an empty key in meta": ("""'t', meta => '{"": 1}'""", "cannot be empty"),
    "an unprintable key in meta": (r"""'t', meta => '{"a\u202E": 1}'""", "printable"),
    "a long key in meta": ("'t', meta => json_build_object(repeat('k', 201), 1)", "at most 200"),
    "a key of meta twice": ("""'t', meta => '{"a": 1, "a": 2}'""", "meta has one key twice"),
    "an unknown until": ("'t', unique_key => 'k', unique_until => 'now'", "must be end or start"),
    "until without a key": ("'t', unique_until => 'start'", "needs a unique_key"),
    "replace until the end": ("'t', unique_key => 'k', replace => '{args}'", "unique_until start"),
    "an unknown value to replace": (
        "'t', unique_key => 'k', unique_until => 'start', replace => '{queue}'",
        "replace must be of args",
    ),
    "two kinds of keys": (
        "'t', unique_key => 'k', throttle_key => 'k', throttle_seconds => 1",
        "exclude each other",
    ),
    "a debounce without seconds": ("'t', debounce_key => 'k'", "belong together"),
    "a throttle without a key": ("'t', throttle_seconds => 1", "belong together"),
    "a debounce of no time": ("'t', debounce_key => 'k', debounce_seconds => 0", "from 0.001"),
    "a throttle without an end": (
        "'t', throttle_key => 'k', throttle_seconds => 'infinity'",
        "from 0.001",
    ),
    "a limit below the debounce": (
        "'t', debounce_key => 'k', debounce_seconds => 9, debounce_at_most_seconds => 8",
        "less than debounce_seconds",
    ),
    "a debounce with a time": (
        "'t', debounce_key => 'k', debounce_seconds => 9, run_at => now()",
        "leave out run_at",
    ),
    "a throttle with an idempotency key": (
        "'t', throttle_key => 'k', throttle_seconds => 9, idempotency_key => 'i'",
        "idempotency_key excludes",
    ),
    "an empty debounce key": ("'t', debounce_key => '', debounce_seconds => 9", "cannot be empty"),
    "a long throttle key": (
        "'t', throttle_key => repeat('k', 201), throttle_seconds => 9",
        "at most 200",
    ),
    "a target of control characters": (r"'t', target => E'a\x01'", "printable"),
    "a target that turns the line around": (r"'t', target => E'a\u202E'", "target: .*printable"),
    "a key with a line's end": (r"'t', unique_key => E'a\u2028'", "unique_key: .*printable"),
    "a key with an invisible space": (r"'t', limit_key => E'\u200Ba'", "limit_key: .*printable"),
    "a key with a byte order mark": (
        r"'t', idempotency_key => E'\uFEFFa'",
        "idempotency_key: .*printable",
    ),
    "a timeout beyond ten years": ("'t', timeout_seconds => 1e9", "timeout_seconds must be"),
    "a number beyond double precision": ("""'t', '{"a": 1e400}'""", "number that is too large"),
    "a negative one": ("""'t', '{"a": [-2e308]}'""", "number that is too large"),
    "one without an exponent": (
        """'t', ('{"a": ' || repeat('1', 310) || '.5}')::json""",
        "number that is too large",
    ),
    "too many digits": (
        """'t', ('{"a": ' || repeat('1', 4301) || '}')::json""",
        "number that is too large",
    ),
    "65 levels": ("""'t', ('{"a":' || repeat('[', 64) || repeat(']', 64) || '}')::json""", "64"),
    "thousands of levels": (
        """'t', ('{"a":' || repeat('[', 5000) || repeat(']', 5000) || '}')::json""",
        "nested deeper than 64 levels",
    ),
}


@pytest.mark.requirement("S0.18")
@pytest.mark.parametrize(("arguments", "why"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused_with_the_reason(
    sql: Connection[Any], queue: Store, arguments: str, why: str
) -> None:
    with pytest.raises(InvalidParameterValue, match=why):
        enqueue(sql, arguments)
    sql.rollback()
    assert queue.counts().ready == 0


@pytest.mark.requirement("S0.18")
def test_an_escaped_backslash_before_u0000_is_no_nul(sql: Connection[Any], queue: Store) -> None:
    kept = enqueue(sql, r"""'t', '{"a": "\\u0000"}'""")
    sql.commit()
    assert queue.read([kept.id])[kept.id].args == r'{"a": "\\u0000"}'


READABLE = {
    "64 levels": """('{"a":' || repeat('[', 63) || repeat(']', 63) || '}')::json""",
    "many values of few levels": """json_build_object('a', array(
        select '[{}, []]'::json from generate_series(1, 1000)))""",
    "brackets in a text": """json_build_object('a', repeat('[{"', 100), 'b', '\\"[')""",
    "the largest number": """'{"a": 1.7976931348623157e308, "b": -1.7976931348623157E+308}'""",
    "the smallest number": """'{"a": 1e-400, "b": 0e0}'""",
    "the most digits": """('{"a": ' || repeat('1', 4300) || '}')::json""",
    "a long fraction": """('{"a": 0.' || repeat('1', 5000) || '}')::json""",
    "numbers in a text": """'{"a": "1e400", "1e999": "9e9999"}'""",
}


@pytest.mark.requirement("S0.18")
@pytest.mark.parametrize("args", READABLE.values(), ids=READABLE.keys())
def test_arguments_within_the_bounds_are_those_that_python_reads(
    sql: Connection[Any], queue: Store, args: str
) -> None:
    kept = enqueue(sql, f"'t', {args}")
    sql.commit()
    payload.parse("args", queue.read([kept.id])[kept.id].args)


@pytest.mark.requirement("S0.18")
def test_a_character_is_printable_if_it_is_for_python(sql: Connection[Any]) -> None:
    """A key that only one of them accepts could not be named on the command line."""
    printable = [chr(code).isprintable() for code in range(sys.maxunicode + 1)]
    edges = {
        code
        for edge in range(1, sys.maxunicode + 1)
        if printable[edge] != printable[edge - 1]
        for code in (edge - 1, edge)
    }
    codes = [code for code in edges if code and not 0xD800 <= code <= 0xDFFF]
    rows = sql.execute(
        "select code, freehold.is_printable(chr(code)) from unnest(%s::integer[]) code", (codes,)
    ).fetchall()
    assert len(rows) > 1000
    assert [code for code, accepted in rows if accepted and not printable[code]] == []
    if unicodedata.unidata_version == "14.0.0":
        assert [code for code, accepted in rows if printable[code] and not accepted] == []
