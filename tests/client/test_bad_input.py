"""Bad input: the right error, the same message on both stores, and nothing written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, TypeAlias

import pytest

from freehold import (
    BadInput,
    BadName,
    BadPayload,
    BadSettings,
    Debounce,
    Freehold,
    FreeholdError,
    Retry,
    Throttle,
    Unique,
    UnknownTask,
)
from freehold.store.types import JobFilter
from tests.client.helpers import jobs_of

EAST = timezone(timedelta(hours=14))
Call: TypeAlias = Callable[[Freehold], object]


def anything(value: Any = None) -> None: ...


def using(**options: Any) -> Call:
    return lambda app: app.task(name="t")(anything).using(**options).enqueue()


def passing(make: Callable[[], Any]) -> Call:
    return lambda app: app.task(name="t")(anything).enqueue(make())


def nested(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


def endless() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
OPTIONS: list[tuple[dict[str, Any], type[FreeholdError], str]] = [
    ({"start_by": 0}, BadInput, "start_by=0: give a time with a zone, or at least 0.001 seconds"),
    ({"start_by": -1.5}, BadInput, "start_by=-1.5"),
    ({"start_by": True}, BadInput, "start_by=True"),
    ({"start_by": "tomorrow"}, BadInput, "start_by='tomorrow'"),
    ({"start_by": float("nan")}, BadInput, "start_by=nan"),
    ({"start_by": timedelta(days=4000)}, BadInput, "at most ten years"),
    ({"start_by": NOON.replace(tzinfo=None)}, BadInput, "start_by"),
    ({"start_by": NOON, "run_at": NOON}, BadInput, "is not after run_at"),
    ({"start_by": NOON, "run_at": NOON + timedelta(hours=1)}, BadInput, "is not after run_at"),
    ({"start_by": NOON, "delay": 5}, BadInput, "start_by as a time excludes delay: give run_at"),
    ({"start_by": 5, "debounce": Debounce("k", 1)}, BadInput, "start_by excludes debounce"),
    ({"start_by": 5, "throttle": Throttle("k", 1)}, BadInput, "start_by excludes debounce"),
    ({"start_by": 5, "unique": Unique("k", until="start")}, BadInput, "start_by excludes debounce"),
    ({"queue": "mail box"}, BadName, "queue 'mail box' is not a usable name"),
    ({"queue": ""}, BadName, "queue ''"),
    ({"queue": "q" * 101}, BadName, "1 to 100"),
    ({"queue": "q\n"}, BadName, "queue 'q\\n'"),
    ({"queue": 5}, BadName, "queue 5"),
    ({"tags": ["fine", "no good"]}, BadName, "tag 'no good'"),
    ({"tags": "mail"}, BadInput, "give a list of tags, such as ['mail']"),
    ({"target": ""}, BadName, "target ''"),
    ({"target": "t" * 201}, BadName, "1 to 200 printable characters"),
    ({"target": "a\0"}, BadName, "target 'a\\x00'"),
    ({"unique_key": "\ud800"}, BadName, "unique_key"),
    ({"idempotency_key": "\x1b[31m"}, BadName, "idempotency_key"),
    ({"limit_key": 7}, BadName, "limit_key 7"),
    ({"meta": {"a": [1]}}, BadPayload, "meta['a'] is nested"),
    ({"meta": {"a": "x" * 4096}}, BadPayload, "the limit is 4,096"),
    ({"meta": {"": 1}}, BadName, "the meta key ''"),
    ({"meta": "a=1"}, BadPayload, "meta is str"),
    ({"priority": 30_001}, BadInput, "priority=30001"),
    ({"priority": 1.5}, BadInput, "give a whole number"),
    ({"priority": True}, BadInput, "priority=True"),
    ({"max_attempts": 0}, BadInput, "max_attempts=0: give 1 to 32000"),
    ({"max_attempts": 2.0}, BadInput, "max_attempts=2.0"),
    ({"timeout": 0}, BadInput, "timeout=0: give at least 0.001 seconds"),
    ({"timeout": timedelta(0)}, BadInput, "timeout=0.0: give at least 0.001 seconds"),
    ({"timeout": float("nan")}, BadInput, "timeout=nan"),
    ({"timeout": "5"}, BadInput, "timeout='5'"),
    ({"timeout": float("inf")}, BadInput, "timeout=inf"),
    ({"delay": -1}, BadInput, "delay=-1: give 0 or more seconds"),
    ({"delay": float("nan")}, BadInput, "delay=nan"),
    ({"delay": "5m"}, BadInput, "delay='5m'"),
    ({"delay": timedelta(days=-1)}, BadInput, "delay="),
    ({"delay": timedelta.max}, BadInput, "at most ten years"),
    ({"run_at": datetime(2030, 1, 1)}, BadInput, "has no time zone"),  # noqa: DTZ001
    ({"run_at": datetime.max.replace(tzinfo=UTC)}, BadInput, "from the year 1900 to 9000"),
    ({"run_at": datetime(1, 1, 1, tzinfo=EAST)}, BadInput, "from the year 1900 to 9000"),
    ({"run_at": "2030-01-01T00:00:00Z"}, BadInput, "give a datetime with a time zone"),
    ({"run_at": datetime(2030, 1, 1, tzinfo=UTC), "delay": 5}, BadInput, "exclude each other"),
    ({"idempotency_key": "k", "idempotency_seconds": 0}, BadInput, "idempotency_seconds=0"),
]
PAYLOADS: list[tuple[Callable[[], Any], type[FreeholdError], str]] = [
    (lambda: "x" * 1024 * 1024, BadPayload, "the limit is 1,048,576: store large data elsewhere"),
    (lambda: nested(70), BadPayload, "nested deeper than 64 levels"),
    (lambda: nested(100_000), BadPayload, "nested deeper than 64 levels"),
    (endless, BadPayload, "nested deeper than 64 levels"),
    (lambda: {"a": ["\0"]}, BadPayload, "holds a NUL character"),
    (lambda: "\ud800", BadPayload, "lone surrogate"),
    (lambda: float("nan"), BadPayload, "holds nan"),
    (lambda: [{"a": float("-inf")}], BadPayload, "holds -inf"),
    (object, BadPayload, "is not JSON"),
]
OTHERS: list[tuple[Call, type[FreeholdError], str]] = [
    (lambda app: app.tasks.get("unknown"), UnknownTask, "no task is called 'unknown'"),
    (lambda app: app.task(name="a b")(anything), BadName, "task 'a b'"),
    (lambda app: app.task(isolation="moon"), BadSettings, "choose auto or process"),  # type: ignore[call-overload]
    (lambda app: app.task(on_cancel="explode"), BadSettings, "choose one of"),  # type: ignore[call-overload]
    (lambda app: app.task(retry=Retry(max_attempts=0)), BadSettings, "max_attempts=0"),
    (lambda app: app.operator.jobs(JobFilter(queue="a b")), BadName, "queue 'a b'"),
    (lambda app: app.operator.jobs(JobFilter(tag="\0")), BadName, "tag"),
    (lambda app: app.operator.jobs(JobFilter(target="\0")), BadName, "target"),
    (lambda app: app.operator.jobs(JobFilter(limit=0)), BadInput, "a page has 1 to 1000 jobs"),
    (lambda app: app.operator.jobs(JobFilter(before=2**63)), BadInput, "before="),
    (lambda app: app.operator.pause_queue("a b", "ann"), BadName, "queue 'a b'"),
    (lambda app: app.operator.pause_queue("q", "a\0"), BadName, "by 'a\\x00'"),
    (
        lambda app: app.operator.pause_queue("q", "ann", until=datetime(2030, 1, 1)),  # noqa: DTZ001
        BadInput,
        "has no time zone",
    ),
    (
        lambda app: app.operator.cancel(1, by="ann", reason="x" * 501),
        BadInput,
        "500 characters",
    ),
    (
        lambda app: app.operator.cancel(1, by="ann", reason="\ud800"),
        BadInput,
        "not Unicode",
    ),
    (lambda app: app.operator.cancel(1, by="\x07"), BadName, "by '\\x07'"),
]
CASES = [
    *((using(**options), error, text) for options, error, text in OPTIONS),
    *((passing(make), error, text) for make, error, text in PAYLOADS),
    *OTHERS,
]


@pytest.mark.parametrize(("call", "error", "text"), CASES)
def test_bad_input_is_refused_with_the_same_message_on_every_store(
    sqlite_app: Freehold,
    postgres_app: Freehold,
    call: Call,
    error: type[FreeholdError],
    text: str,
) -> None:
    messages = []
    for app in (sqlite_app, postgres_app):
        with pytest.raises(error) as caught:
            call(app)
        messages.append(str(caught.value))
        assert jobs_of(app) == ()
        assert app.operator.queues() == []
    assert text in messages[0]
    assert messages[0] == messages[1]


@pytest.mark.parametrize("job_id", [1, 0, -1, 2**63 - 1, 2**63, 2**200])
def test_an_unknown_id_is_refused_with_the_same_message_on_every_store(
    sqlite_app: Freehold, postgres_app: Freehold, job_id: int
) -> None:
    calls: list[Call] = [
        lambda app: app.operator.show(job_id),
        lambda app: app.operator.explain(job_id),
        lambda app: app.operator.cancel(job_id, by="ann"),
    ]
    for call in calls:
        messages = set()
        for app in (sqlite_app, postgres_app):
            with pytest.raises(FreeholdError) as caught:
                call(app)
            messages.add(str(caught.value))
        assert len(messages) == 1
        assert f"there is no job {job_id}" in messages.pop()


def test_two_functions_cannot_share_a_name(sqlite_app: Freehold) -> None:
    sqlite_app.task(name="t")(anything)
    with pytest.raises(BadSettings, match="two tasks are called t"):
        sqlite_app.task(name="t")(nested)
