"""Retention by queue and task: only the jobs of the rule go, once their day is old enough."""

from __future__ import annotations

import pytest

from freehold.errors import BadInput
from freehold.model.audit import AuditFilter
from freehold.model.outcome import OutcomeKind
from freehold.operator import Operator
from freehold.store.types import NewStep, RetentionRule
from freehold.store.verbs import retention
from tests.stores import StoreUnderTest, key_of

pytestmark = pytest.mark.requirement("N16")

DAY = 86400.0
KEEP_DAYS = 30.0


def done(store: StoreUnderTest, count: int = 1, **fields: object) -> list[int]:
    queue = str(fields.get("queue", "default"))
    ids = [store.add(**fields) for _ in range(count)]
    for attempt in store.claim(queue=queue):
        assert store.end(attempt, OutcomeKind.FAIL)
    return ids


def apply(store: StoreUnderTest) -> int:
    steps = 0
    while store.store.apply_retention(KEEP_DAYS, 200):
        steps += 1
    return steps


def kept(store: StoreUnderTest, ids: list[int]) -> list[int]:
    return sorted(store.store.read(ids))


@pytest.mark.parametrize("kind", ["queue", "task"])
def test_only_jobs_of_the_rule_are_deleted_and_only_old_ones(
    store: StoreUnderTest, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "WINDOW", 2)
    people = Operator(store.store)
    fields: dict[str, object] = {"queue": "q"} if kind == "queue" else {"task": "x"}
    people.set_retention(kind, "q" if kind == "queue" else "x", 3.0, by="ann")
    old, others = done(store, 5, **fields), done(store, 3)
    store.advance(2 * DAY)
    young = done(store, 2, **fields)
    apply(store)
    assert kept(store, [*old, *others, *young]) == sorted([*old, *others, *young])
    store.advance(2.5 * DAY)
    assert store.store.retention_is_due(KEEP_DAYS)
    apply(store)
    assert kept(store, [*old, *others, *young]) == sorted([*others, *young])
    assert [store.store.events(job_id) for job_id in old] == [[]] * 5
    assert store.store.events(others[0]) != []
    store.advance(2 * DAY)
    apply(store)
    assert kept(store, [*old, *others, *young]) == others


def test_the_steps_of_a_deleted_job_go_with_it(store: StoreUnderTest) -> None:
    Operator(store.store).set_retention("queue", "q", 3.0, by="ann")
    ids = {queue: store.add(queue=queue) for queue in ("q", "default")}
    for queue in ids:
        (attempt,) = store.claim(queue=queue)
        assert store.store.put_steps(attempt.owner, [NewStep(key_of(attempt), "a", 1)]) == ()
        assert store.end(attempt, OutcomeKind.FAIL)
    store.advance(5 * DAY)
    apply(store)
    assert kept(store, list(ids.values())) == [ids["default"]]
    assert {queue: len(store.store.read_steps(ids[queue])) for queue in ids} == {
        "q": 0,
        "default": 1,
    }


def test_a_day_is_scanned_once(store: StoreUnderTest) -> None:
    """An hour later the same days are not read again, however many jobs they have."""
    Operator(store.store).set_retention("queue", "q", 1.0)
    done(store, 3)
    store.advance(5 * DAY)
    assert apply(store) > 0
    assert apply(store) == 0
    assert not store.store.retention_is_due(KEEP_DAYS)


def test_a_first_day_that_a_rule_can_scan_is_due(store: StoreUnderTest) -> None:
    """The first day begins at midnight, and history is kept from some hour of it."""
    store.advance(1.5 * DAY - store.now().timestamp() % DAY)  # to noon
    apply(store)
    assert not store.store.retention_is_due(KEEP_DAYS)
    Operator(store.store).set_retention("queue", "q", KEEP_DAYS - 0.75)
    assert store.store.retention_is_due(KEEP_DAYS)
    assert apply(store) == 1
    assert not store.store.retention_is_due(KEEP_DAYS)


def test_live_jobs_are_never_deleted_by_a_rule(store: StoreUnderTest) -> None:
    Operator(store.store).set_retention("task", "t", 0.0)
    waiting = store.add()
    blocked = store.add(target="lane", queue="q")
    assert store.end(store.claim_one(queue="q"), OutcomeKind.FAIL)
    store.advance(3 * DAY)
    apply(store)
    assert kept(store, [waiting, blocked]) == [waiting, blocked]


def test_rules_are_listed_changed_removed_and_recorded(store: StoreUnderTest) -> None:
    people = Operator(store.store)
    people.set_retention("queue", "mail", 7.0, by="ann", reason="privacy")
    people.set_retention("queue", "mail", 3.0, by="bob")
    people.set_retention("task", "ping", 0.5)
    assert people.retention_rules() == [
        RetentionRule("queue", "mail", 3.0),  # type: ignore[arg-type]
        RetentionRule("task", "ping", 0.5),  # type: ignore[arg-type]
    ]
    people.set_retention("queue", "mail", None, by="ann")
    assert [rule.name for rule in people.retention_rules()] == ["ping"]
    entries = store.store.audit(AuditFilter()).entries[::-1]
    assert [(e.kind, e.subject, e.before, e.after) for e in entries] == [
        ("retention", "queue mail", None, {"days": 7.0}),
        ("retention", "queue mail", {"days": 7.0}, {"days": 3.0}),
        ("retention", "task ping", None, {"days": 0.5}),
        ("retention", "queue mail", {"days": 3.0}, {"days": None}),
    ]


@pytest.mark.parametrize(
    ("kind", "name", "days"),
    [("lane", "x", 1.0), ("queue", "a b", 1.0), ("queue", "q", -1.0), ("task", "t", 1e9)],
)
def test_an_invalid_rule_is_refused(
    store: StoreUnderTest, kind: str, name: str, days: float
) -> None:
    before = store.everything()
    with pytest.raises(BadInput):
        Operator(store.store).set_retention(kind, name, days)
    assert store.everything() == before
