"""A database as it looks after a busy month, made in seconds by the server itself.

Ids are given in the order of time: a million finished jobs first, then the live ones.
"""

from __future__ import annotations

from typing import Any

from psycopg import Connection

from freehold.store.stage_sql import STAGE_NAMES

FINISHED = 1_000_000
SCHEDULED = 200_000
READY = 100_000
LANES = 2_000
FOLLOWERS_EACH = 5
LEASED = 1_000
EXPIRED = 100
KEYS = 50_000
LIMITED = 20_000
WAITING = 2_000
STEPS = 100_000
QUEUES = 22
SCHEDULES = 20_000
#: Schedules are no flood: they come with a deploy, and some are there before.
OLD_SCHEDULES = 2_000
OWNER = "w1"

_HISTORY_DAYS = """
do $$
declare day date; parent text; part text;
begin
    foreach parent in array array['history', 'event'] loop
        for back in 1 .. 30 loop
            day := (now() at time zone 'UTC')::date - back;
            part := format('freehold.%I', parent || '_' || to_char(day, 'YYYYMMDD'));
            execute format('create table %s partition of freehold.%I for values from (%L) to (%L)',
                part, parent, day::timestamp at time zone 'UTC',
                (day + 1)::timestamp at time zone 'UTC');
        end loop;
    end loop;
end $$
"""

_FINISHED = """
insert into freehold.history (id, created_at, leased_at, started_at, finished_at, token, priority,
    attempt, max_attempts, lost_attempts, state, queue, task, finished_by, args)
select i, at, at, at, at, i, 0, 1, 5, 0,
    case when i % 100 = 0 then 'failed' when i % 100 = 50 then 'canceled' else 'succeeded' end,
    'q' || i % 20, 't' || i % 50, 'w' || i % 8, '{{"n": 1}}'
from (select i, date_trunc('day', now(), 'UTC')
             - ({count} - i + 1) * interval '30 days' / {count} as at
      from generate_series(1, {count}) i) x
"""

_EVENTS = """
insert into freehold.event (job_id, at, attempt, kind, state)
select id, finished_at, attempt, 'retried', 'queued' from freehold.history where id % 5 = 0
"""

_AUDIT = """
insert into freehold.audit (at, by, via, verb, kind, subject, before, after)
select now() - ({count} - i) * interval '1 minute', 'ann', 'cli', 'retry', 'job', i % 1000,
    '{{}}', '{{}}'
from generate_series(1, {count}) i
"""

_KEYS = """
insert into freehold.idempotency (key, job_id, expires_at)
select 'key' || i, i, now() + interval '1 hour' from generate_series(1, {count}) i
"""

#: Of jobs that were delayed for months, or ended lately: retention keeps all of them.
_STEPS = """
insert into freehold.step (job_id, name, number, token, at, kind, value, hidden)
select case when i % 2 = 0 then {finished} + i / 2 else {finished} - i end, 's' || i % 3, 1, i,
    now() - interval '90 days' + i * interval '80 seconds', 'result', '1', false
from generate_series(1, {count}) i
"""

_LIVE = """
insert into freehold.job (id, created_at, run_at, stage, priority, attempt, max_attempts, queue,
    task, target, limit_key, unique_key, lease_owner, lease_token, leased_at,
    lease_expires_at, stop_request, args)
select nextval('freehold.job_id'), now(), {run_at}, {stage}, i % 5, 0, 5, {queue}, {task},
    {target}, {limit_key}, {unique_key}, {owner}, {token}, {leased_at}, {expires_at}, {request},
    '{{"n": 1}}'
from generate_series(1, {count}) i
"""

_PLAIN = {
    "run_at": "null::timestamptz",
    "queue": "case when i % 5 = 0 then 'q' || i % 20 else 'default' end",
    "task": "'t' || i % 50",
    "target": "null::text",
    "limit_key": "null::text",
    "unique_key": "case when i % 10 = 0 then gen_random_uuid()::text end",
    "owner": "null::text",
    "token": "null::bigint",
    "leased_at": "null::timestamptz",
    "expires_at": "null::timestamptz",
    "request": "null::text",
}


_SCHEDULES = """
insert into freehold.schedule (name, definition, created_at, anchor_at, counted_to, next_at)
select 's' || i, '{{"job":{{"task":"t"}},"every_seconds":3600}}', now(), now(), now(),
    case when i % 3 > 0 then now() + (i - 150) * interval '1 second' end
from generate_series({first}, {last}) i on conflict (name) do nothing
"""


def fill(connection: Connection[Any]) -> None:
    """Jobs in every stage, of which the planner has no statistics."""
    connection.execute(_FINISHED.format(count=FINISHED).encode())
    connection.execute(_EVENTS)
    connection.execute(_AUDIT.format(count=KEYS).encode())
    connection.execute(_KEYS.format(count=KEYS).encode())
    connection.execute(_SCHEDULES.format(first=OLD_SCHEDULES + 1, last=SCHEDULES).encode())
    connection.execute("select setval('freehold.job_id', %s)", (FINISHED,))
    scheduled = "now() + i * interval '1 second' - interval '1 hour'"
    live(connection, SCHEDULED, STAGE_NAMES["scheduled"], run_at=scheduled)
    live(connection, READY, STAGE_NAMES["ready"])
    # Lanes with one ready job at their head, others waiting behind it; and a few that are blocked.
    for _ in range(FOLLOWERS_EACH):
        live(connection, LANES, STAGE_NAMES["follower"], target="'lane' || i")
    live(connection, LANES // 2, STAGE_NAMES["lane_head"], target="'lane' || i")
    live(connection, LANES // 10, STAGE_NAMES["paused"], target=f"'lane' || i + {LANES // 2}")
    live(
        connection,
        LANES // 10,
        STAGE_NAMES["failed"],
        target=f"'lane' || i + {LANES // 2 + LANES // 10}",
    )
    for stage in ("n", "p", "u"):
        live(connection, 200, f"'{stage}'")
    # Two keys with a limit: one has room for a few, the other has none left. And a queue.
    live(
        connection,
        LIMITED,
        STAGE_NAMES["limited"],
        limit_key="case i % 2 when 0 then 'roomy' else 'full' end",
    )
    live(connection, 200, STAGE_NAMES["ready"], queue="'limited'", limit_key="'full'")
    live(connection, 200, STAGE_NAMES["ready"], queue="'limited'", limit_key="'key:' || i")
    connection.execute("insert into freehold.key_limit (key, max_leases) values ('full', 0)")
    connection.execute("insert into freehold.key_limit (key, max_leases) values ('roomy', 7)")
    connection.execute("insert into freehold.key_limit (key, max_leases) values ('key:*', 1)")
    connection.execute("insert into freehold.queue (name, max_leases) values ('limited', 100)")
    connection.execute(_STEPS.format(count=STEPS, finished=FINISHED).encode())
    _wait(connection)
    _lease(connection)


def _wait(connection: Connection[Any]) -> None:
    """Jobs with keys that they hold until a worker takes them, and windows of throttles."""
    live(
        connection,
        WAITING,
        STAGE_NAMES["scheduled"],
        run_at="now() + interval '1 day'",
        task="'waits'",
    )
    connection.execute(
        "update freehold.job set waiting_key = 'unique/t/' || id % 10000, "
        "start_by = now() + interval '1 day' where task = 'waits'"
    )
    connection.execute(
        "insert into freehold.throttle select 'throttle/t/' || i, now() + interval '1 day' "
        "from generate_series(1, 10000) i"
    )


def _lease(connection: Connection[Any]) -> None:
    """Leases of a small fleet, some of them expired, some with a stop request."""
    live(
        connection,
        LEASED,
        STAGE_NAMES["leased"],
        owner="'w' || i % 8",
        token="i",
        leased_at="now() - interval '1 minute'",
        expires_at=f"now() + case when i <= {EXPIRED} then -1 else 86400 end * interval '1 second'",
        request="case when i % 100 = 1 then 'cancel' end",
        limit_key="case i % 3 when 0 then 'roomy' when 1 then 'key:' || i % 100 end",
    )


def live(connection: Connection[Any], count: int, stage: str, **columns: str) -> None:
    text = _LIVE.format(count=count, stage=stage, **{**_PLAIN, **columns})
    connection.execute(text.encode())


def rest_after_another_hour(connection: Connection[Any]) -> None:
    """Empty and vacuumed, with statistics from when all jobs waited and no lane or key was used."""
    live(
        connection,
        3_000,
        STAGE_NAMES["scheduled"],
        run_at="now() + interval '1 day'",
        unique_key="null::text",
    )
    connection.execute(_SCHEDULES.format(first=1, last=OLD_SCHEDULES).encode())
    tables = "freehold.job, freehold.history, freehold.event, freehold.schedule"
    connection.execute(f"analyze {tables}".encode())
    connection.execute("delete from freehold.job")
    connection.execute("vacuum freehold.job, freehold.idempotency")


def add_bulk_operation(connection: Connection[Any]) -> None:
    """Number 1, which runs: a step of an operation that does not exist is refused."""
    connection.execute(
        "insert into freehold.bulk_operation"
        " (id, asked_at, by, via, verb, filter, jobs, chunks, preview, state)"
        " values (1, now(), 'ann', 'cli', 'retry', '{}', 1, 2, '{}', 'running')"
    )


def add_days(connection: Connection[Any]) -> None:
    """Partitions for the last 30 days. Without statistics, as every new day is at first."""
    connection.execute(_HISTORY_DAYS)


def forget_statistics(connection: Connection[Any]) -> None:
    """As after a restore, before ANALYZE."""
    connection.execute("set allow_system_table_mods = on")
    connection.execute(
        "delete from pg_statistic where starelid in "
        "(select oid from pg_class where relnamespace = 'freehold'::regnamespace)"
    )
    connection.execute(
        "update pg_class set reltuples = -1, relpages = 0 "
        "where relnamespace = 'freehold'::regnamespace and relkind in ('r', 'p')"
    )
    connection.execute("set allow_system_table_mods = off")
