"""Rows that a producer inserts itself, without the client: refused, or a job like any other."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest
from psycopg import Connection
from psycopg.errors import (
    CheckViolation,
    DataError,
    InsufficientPrivilege,
    IntegrityError,
    InvalidParameterValue,
    ObjectNotInPrerequisiteState,
)

from freehold import Freehold
from freehold.json_views import job_document
from freehold.model.state import Stage
from freehold.store.stage_sql import stage_byte
from freehold.store.types import JobFilter
from tests.cli.shell import run
from tests.deploy.roles import Roles
from tests.sizes import sized

#: A job as the client inserts it.
PLAIN = {
    "id": "nextval('freehold.job_id')",
    "created_at": "now()",
    "stage": f"'{stage_byte(Stage.READY)}'",
    "priority": "0",
    "max_attempts": "1",
    "queue": "'default'",
    "task": "'quick'",
    "args": "'{}'",
}
LEASE = {
    "stage": f"'{stage_byte(Stage.LEASED)}'",
    "lease_owner": "'w'",
    "lease_token": "1",
    "leased_at": "now() - interval '1 h'",
    "lease_expires_at": "now() - interval '1 min'",
}
REFUSED_ROWS: dict[str, dict[str, str]] = {
    "as many attempts as a claim can count": {"attempt": "32767", "max_attempts": "32767"},
    "a task that no index can have": {"task": "repeat('x', 1000000)"},
    "an empty task": {"task": "''"},
    "a queue with a line's end": {"queue": r"E'a\n'"},
    "an expired lease": LEASE,
    "a lost lease too many": {**LEASE, "lost_attempts": "32767"},
    "a lease without an end": {**LEASE, "lease_expires_at": "'infinity'", "target": "'lane'"},
    "created without a time": {"created_at": "'infinity'"},
    "created before all time": {"created_at": "'-infinity'"},
    "created before our era": {"created_at": "'0001-01-01 BC'"},
    "due without a time": {"run_at": "'infinity'"},
    "due after year 9999": {"run_at": "'10000-01-01'"},
    "progress that is none": {"progress": "'7'"},
    "a reason": {"reason": "'x'"},
    "a stop request": {"stop_requested_by": "'x'"},
    "the largest id": {"id": "9223372036854775807"},
    "a negative id": {"id": "-5"},
    "the id of the next job": {"id": "nextval('freehold.job_id') + 1"},
    "a priority out of range": {"priority": "30001"},
    "attempts out of range": {"max_attempts": "32001"},
    "a timeout without an end": {"timeout_seconds": "'infinity'"},
    "a timeout that is no number": {"timeout_seconds": "'NaN'"},
    "a timeout of no time": {"timeout_seconds": "0"},
    "a long target": {"target": "repeat('x', 201)"},
    "the lane of a schedule": {"target": "'schedule:books'"},
    "the key of a schedule": {"unique_key": "'schedule:books'"},
    "an empty target": {"target": "''"},
    "a target that no command can name": {"target": r"E'a\u202E'"},
    "a long unique key": {"unique_key": "repeat('x', 201)"},
    "a long limit key": {"limit_key": "repeat('x', 201)"},
    "tags that are no list": {"tags": "'7'"},
    "tags that are no names": {"tags": "'[1]'"},
    "meta that is a list": {"meta": "'[1]'"},
    "nested meta": {"meta": """'{"a": {}}'"""},
    "much meta": {"meta": "json_build_object('a', repeat('x', 4096))"},
    "a waiting key of no kind": {"waiting_key": "'k'"},
    "a waiting key of another task": {"waiting_key": "'unique/other/k'"},
    "a long waiting key": {"waiting_key": "'unique/quick/' || repeat('k', 201)"},
    "start by without an end": {"start_by": "'infinity'"},
    "start by after year 9999": {"start_by": "'10000-01-01'"},
    "a policy that is none": {"policy": "'7'"},
    "a large policy": {"policy": "json_build_object('a', repeat('x', 10000))"},
    "arguments that are none": {"args": "'[1]'"},
    "arguments beyond double precision": {"args": """'{"a": 1e400}'"""},
    "scheduled for no time": {"stage": f"'{stage_byte(Stage.SCHEDULED)}'"},
    "a follower of nothing": {"stage": f"'{stage_byte(Stage.FOLLOWER)}'"},
    "no stage": {"stage": "'z'"},
    **{
        f"stage {stage}": {"stage": f"'{stage_byte(stage)}'", "target": "'lane'"}
        for stage in Stage
        if stage not in (Stage.PENDING, Stage.SCHEDULED, Stage.READY, Stage.FOLLOWER)
    },
}
REFUSALS = (InsufficientPrivilege, InvalidParameterValue, CheckViolation)


def insert(columns: dict[str, str]) -> bytes:
    row = {**PLAIN, **columns}
    return (
        f"insert into freehold.job ({', '.join(row)}) values ({', '.join(row.values())})".encode()
    )


@pytest.fixture(scope="module")
def producer(shared_roles: Roles) -> Connection[Any]:
    return shared_roles.connect("producer")


def test_a_producer_may_insert_a_job_itself(producer: Connection[Any]) -> None:
    """Or the rows below would be refused for another reason."""
    producer.execute(insert({}))
    producer.execute(insert({"run_at": "now()", "target": "'lane'", "tags": """'["a"]'"""}))
    producer.execute(insert({"meta": """'{"a": 1}'"""}))
    producer.execute(insert({"waiting_key": "'unique/quick/by hand'"}))
    producer.execute(insert({"start_by": "now()"}))


@pytest.mark.parametrize("columns", REFUSED_ROWS.values(), ids=REFUSED_ROWS.keys())
def test_a_row_that_is_no_new_job_is_refused(
    producer: Connection[Any], columns: dict[str, str]
) -> None:
    with pytest.raises(REFUSALS):
        producer.execute(insert(columns))


def test_a_producer_cannot_use_the_id_of_an_ended_job(
    shared_roles: Roles, producer: Connection[Any]
) -> None:
    worker = shared_roles.app("worker")
    ended = worker.tasks.get("quick").enqueue().id
    assert worker.run_worker(until_idle=True) == 0
    producer.execute(insert({}))
    with pytest.raises(InvalidParameterValue, match="drawn from the sequence"):
        producer.execute(insert({"id": str(ended)}))


@pytest.mark.parametrize(
    "statement",
    [
        "insert into freehold.last_notified values ('+default', 'infinity')",
        "update freehold.last_notified set at = 'infinity'",
        "insert into freehold.idempotency values ('k', 1, 'infinity')",
        "insert into freehold.idempotency values ('k', -1, now())",
        "insert into freehold.idempotency values (repeat('k', 201), 1, now())",
    ],
)
def test_a_time_without_an_end_is_refused_beside_jobs_too(
    shared_roles: Roles, producer: Connection[Any], statement: str
) -> None:
    shared_roles.app("producer").tasks.get("quick").enqueue()
    shared_roles.app("producer").close()
    producer.execute(
        "insert into freehold.last_notified values ('+x', now()) on conflict do nothing"
    )
    with pytest.raises(REFUSALS):
        producer.execute(statement.encode())


def test_a_producer_cannot_replace_the_operators_of_the_check(roles: Roles) -> None:
    user = roles.user("producer")
    roles.admin.execute(f"create schema own authorization {user}".encode())
    with roles.connect("producer") as connection:
        connection.execute(
            """
            create function own.never(text, text) returns boolean language sql as 'select false';
            create operator own.!~ (leftarg = text, rightarg = text, function = own.never);
            set search_path = own, pg_catalog;
            """
        )
        row = connection.execute("select 'a b' !~ '^[a-z]$'").fetchone()
        assert row == (False,), "the operator of the producer is used"
        with pytest.raises(InvalidParameterValue, match="not a usable name"):
            connection.execute(insert({"task": "'a b'"}))
    roles.admin.execute("drop schema own cascade")


# -- many rows ---------------------------------------------------------------------------------

LONG_NAME = "n" * 100
TASKS = ("quick", "a", LONG_NAME, "A_.:-9")
QUEUES = ("default", "q", LONG_NAME, "0")
NAMES = ("''", "'a b'", "repeat('x', 101)", "'ä'", r"E'\n'", "null", "'-a'")
TIMES = ("'infinity'", "'-infinity'", "'4713-01-01 BC'", "'294276-12-31'", "'10000-01-01'")
PAST_OR_FUTURE = (
    "now()",
    "now() - interval '1 day'",
    "now() + interval '1 h'",
    "'9999-12-29'",
    "'0001-01-03'",
)
KEYS = ("''", "repeat('k', 201)", r"E'\u200B'", r"E'\x01'", r"E'\uFEFF'", r"E'\u2028'")
JSON = ("'7'", "'[]'", "'null'", "'[1]'", """'"x"'""", """'{"a": 1e400}'""")
DEEP = """('{"a":' || repeat('[', 100) || repeat(']', 100) || '}')::json"""
#: For each column values that a new job may have, and values that it may not have.
COLUMNS: dict[str, tuple[tuple[str | None, ...], tuple[str, ...]]] = {
    "id": (
        ("nextval('freehold.job_id')",),
        ("0", "-1", "1", "9223372036854775807", "null", "nextval('freehold.job_id') + 7"),
    ),
    "created_at": (PAST_OR_FUTURE, (*TIMES, "null")),
    "run_at": ((None, *PAST_OR_FUTURE), TIMES),
    "stage": (
        tuple(f"'{stage_byte(s)}'" for s in (Stage.READY, Stage.PENDING, Stage.SCHEDULED)),
        tuple(f"'{letter}'" for letter in (*map(stage_byte, Stage), "z", "")),
    ),
    "priority": (("0", "-30000", "30000", "7"), ("30001", "-32768", "32767", "40000", "null")),
    "max_attempts": (("1", "5", "32000"), ("0", "-1", "32001", "32767", "null")),
    "timeout_seconds": (
        (None, "1", "315360000", "60.5"),
        ("0", "-1", "'NaN'", "'infinity'", "3e38", "1e-30"),
    ),
    "queue": (tuple(f"'{name}'" for name in QUEUES), NAMES),
    "task": (tuple(f"'{name}'" for name in TASKS), NAMES),
    "target": ((None, None, "'lane'", "repeat('t', 200)", "'größe 日本'"), KEYS),
    "limit_key": ((None, None, "'k'", "repeat('t', 200)"), KEYS),
    "unique_key": ((None, None, None, "gen_random_uuid()::text"), KEYS),
    "tags": ((None, """'["a", "b"]'"""), (*JSON, """'["a b"]'""")),
    "policy": (
        (None, "'{}'", """'{"jitter": 2, "on_cancel": 7, "x": {}}'""", """'{"factor": "x"}'"""),
        JSON,
    ),
    "args": (
        ("'{}'", """'{"a": [1, {}, null]}'""", """json_build_object('a', repeat('x', 3000))"""),
        (*JSON, DEEP, r"""'{"a": "\u0000"}'""", r"""'{"a": "\ud800"}'""", "null"),
    ),
}
#: The columns of leases, attempts and reports, which no producer writes.
OTHERS = {
    "attempt": "32767",
    "lost_attempts": "32767",
    "progress": "'7'",
    "lease_owner": "'w'",
    "lease_token": "9223372036854775807",
    "lease_expires_at": "'infinity'",
    "leased_at": "'-infinity'",
    "heartbeat_at": "now()",
    "started_at": "now()",
    "stop_request": "'cancel'",
    "stop_requested_by": "'x'",
    "stop_request_reason": "'x'",
    "reason": "'x'",
}


def random_row(chance: random.Random) -> dict[str, str]:
    row = {}
    for column, (good, bad) in COLUMNS.items():
        value = chance.choice(bad if chance.random() < 0.05 else good)
        if value is not None:
            row[column] = value
    if chance.random() < 0.05:
        column = chance.choice(sorted(OTHERS))
        row[column] = OTHERS[column]
    return row


def test_no_row_of_a_producer_stops_a_queue_or_breaks_a_command(roles: Roles) -> None:
    seed = sized("PRODUCER_SEED", short=1, long=1)
    tried = sized("PRODUCER_ROWS", short=1500, long=100_000)
    chance = random.Random(seed)
    refused: Counter[str] = Counter()
    with roles.connect("producer") as connection:
        for _ in range(tried):
            try:
                connection.execute(insert(random_row(chance)))
            except (
                DataError,
                InsufficientPrivilege,
                IntegrityError,
                ObjectNotInPrerequisiteState,
            ) as error:
                refused[type(error).__name__] += 1
    accepted = tried - refused.total()
    print(f"seed {seed}: {tried} rows, {accepted} accepted, refused: {dict(refused)}")
    assert tried / 10 < accepted < tried * 9 / 10, "both kinds of rows were tried"
    assert live(roles) == accepted
    commands_work(roles)
    run_all(roles)
    assert live(roles) == 0
    ended = roles.admin.execute("select count(*) from freehold.history").fetchone()
    assert ended == (accepted,)
    commands_work(roles)


def live(roles: Roles) -> int:
    row = roles.admin.execute("select count(*) from freehold.job").fetchone()
    assert row is not None
    return int(row[0])


def commands_work(roles: Roles) -> None:
    viewer = roles.app("viewer")
    ids, before = [], None
    while True:
        page = viewer.operator.jobs(JobFilter(limit=500, before=before))
        msgspec.json.encode([job_document(job, show_args=True) for job in page.jobs])
        ids += [job.id for job in page.jobs]
        before = page.next
        if before is None:
            break
    some = [str(job_id) for job_id in ids[:: max(1, len(ids) // 10)]]
    for command in (
        ("jobs",),
        ("jobs", "--json"),
        ("queues",),
        ("lanes",),
        ("limits",),
        ("job", "show", "--args", *some),
        ("job", "show", "--json", *some),
        ("job", "explain", *some),
        ("workers",),
    ):
        result = run(*command, env={"FREEHOLD_URL": viewer.url})
        assert result.code == 0, (command, result.err)


def run_all(roles: Roles) -> None:
    """Every queue is worked off; then jobs that wait for a person or for years are ended."""
    app = roles.app("worker")
    register(app)
    assert app.run_worker(queues=QUEUES, concurrency=100, until_idle=True) == 0
    left = roles.admin.execute(
        "select distinct s.stage from freehold.jobs s where not (s.stage = 'scheduled' "
        "and s.run_at > freehold.clock())"
    ).fetchall()
    assert {stage for (stage,) in left} <= {"pending"}, "no queue and no lane stands still"
    waiting = [row[0] for row in roles.admin.execute("select id from freehold.job").fetchall()]
    for start in range(0, len(waiting), 500):
        results = app.operator.cancel(*waiting[start : start + 500], by="ann")
        assert {result.status for result in results} == {"done"}


def register(app: Freehold) -> None:
    for name in set(TASKS) - {"quick"}:

        async def handler(a: Any = None) -> None: ...

        app.task(name=name)(handler)
