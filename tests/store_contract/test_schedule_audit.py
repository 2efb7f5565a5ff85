"""Every change of a schedule by an operator is in the audit, and nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from freehold.errors import Refused
from freehold.model.audit import AuditEntry, AuditFilter, AuditKind
from freehold.model.job import NewJob
from freehold.model.schedule import define_schedule
from freehold.model.timing import Every
from freehold.operator import Operator
from tests.stores import StoreUnderTest

JOB = NewJob(task="t", args=b'{"password":"hush"}')


def entries(operator: Operator) -> list[AuditEntry]:
    """Oldest first."""
    page = operator.audit(AuditFilter(kind=AuditKind.SCHEDULE, subject="books"))
    return list(reversed(page.entries))


@pytest.mark.requirement("N3")
def test_each_change_is_recorded_with_its_author_and_both_values(store: StoreUnderTest) -> None:
    operator = Operator(store.store).through("cli")
    operator.put_schedule("books", Every(hours=1), JOB, by="ann", reason="r1")
    operator.edit_schedule("books", by="bob", timing=Every(hours=2), reason="r2")
    until = store.now() + timedelta(days=1)
    operator.pause_schedule("books", by="ann", reason="audit", until=until)
    operator.resume_schedule("books", by="ann")
    operator.run_schedule("books", by="eve")
    since = store.now() - timedelta(hours=5)
    operator.backfill_schedule("books", since, store.now(), by="eve", reason="r3")
    operator.drop_schedule("books", by="ann")
    found = entries(operator)
    assert [(each.verb, each.by, each.via) for each in found] == [
        ("put", "ann", "cli"),
        ("edit", "bob", "cli"),
        ("pause", "ann", "cli"),
        ("resume", "ann", "cli"),
        ("run", "eve", "cli"),
        ("backfill", "eve", "cli"),
        ("drop", "ann", "cli"),
    ]
    put, edit, pause, resume, _, backfill, drop = found
    assert [each.reason for each in (put, edit, backfill)] == ["r1", "r2", "r3"]
    assert (put.before, put.after and put.after["time"]) == (None, "every 1 h")
    assert (edit.before or {})["time"] == "every 1 h"
    assert (edit.after or {})["time"] == "every 2 h"
    assert (pause.reason, (pause.after or {})["pause_reason"]) == ("audit", "audit")
    assert "paused_by" not in (resume.after or {})
    assert ((drop.before or {})["time"], drop.after) == ("every 2 h", None)
    assert "hush" not in repr(found)


def test_a_change_that_does_not_happen_is_not_recorded(store: StoreUnderTest) -> None:
    operator = Operator(store.store)
    operator.put_schedule("books", Every(hours=1), JOB, by="ann")
    operator.resume_schedule("books", by="ann")
    with pytest.raises(Refused):
        operator.reset_schedule("books", by="ann")
    operator.drop_schedule("books", by="ann")
    with pytest.raises(Refused):
        operator.drop_schedule("books", by="ann")
    assert [each.verb for each in entries(operator)] == ["put", "drop"]


def test_declarations_of_code_are_no_changes_by_an_operator(store: StoreUnderTest) -> None:
    operator = Operator(store.store)
    store.store.declare_schedules("shop", [define_schedule("books", Every(hours=1), JOB)])
    store.store.declare_schedules("shop", [define_schedule("books", Every(hours=2), JOB)])
    store.store.declare_schedules("shop", [])
    assert entries(operator) == []
