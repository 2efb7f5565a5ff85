"""The audit: each change by an operator is recorded once, with the change, and nothing else is."""

from __future__ import annotations

import pytest

from freehold.errors import BadInput, IllegalTransition, UniqueKeyTaken
from freehold.model.audit import AuditEntry, AuditFilter, AuditKind, Author
from freehold.model.limit import Limit, Rate
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import OutcomeKind
from freehold.operator import Operator
from freehold.store.verbs import audit, operator
from tests.stores import StoreUnderTest

pytestmark = pytest.mark.requirement("N16")


def changes(store: StoreUnderTest, **fields: object) -> list[AuditEntry]:
    """Oldest first."""
    page = store.store.audit(AuditFilter(**fields))  # type: ignore[arg-type]
    return list(page.entries)[::-1]


def short(entry: AuditEntry) -> tuple[object, ...]:
    return (entry.verb, entry.kind, entry.subject, entry.before, entry.after)


def test_every_change_of_a_job_is_recorded_with_both_values(store: StoreUnderTest) -> None:
    people = Operator(store.store).through("cli")
    first, second = store.add(), store.add(target="lane")
    people.pause(first, by="ann", reason="look")
    people.resume(first, by="bob")
    store.claim()
    people.cancel(first, by="ann")
    people.cancel(second, by="ann")
    found = changes(store)
    assert [short(entry) for entry in found] == [
        ("pause", "job", str(first), {"state": "queued"}, {"state": "paused"}),
        ("resume", "job", str(first), {"state": "paused"}, {"state": "queued"}),
        *(
            (
                "cancel",
                "job",
                str(job_id),
                {"state": "assigned", "stop_request": None},
                {"stop_request": "cancel"},
            )
            for job_id in (first, second)
        ),
    ]
    assert [(e.by, e.via, e.reason) for e in found[:2]] == [
        ("ann", "cli", "look"),
        ("bob", "cli", None),
    ]
    assert found[0].at == store.now()


def test_retries_and_resolved_failures_are_recorded(store: StoreUnderTest) -> None:
    people = Operator(store.store)
    done, failed = store.add(), store.add()
    store.end(store.claim_one(), OutcomeKind.SUCCESS)
    store.end(store.claim_one(), OutcomeKind.FAIL)
    people.retry(done, by="ann")
    people.cancel(failed, by="ann", reason="known")
    assert [short(entry) for entry in changes(store)] == [
        ("retry", "job", str(done), {"state": "succeeded"}, {"state": "queued"}),
        ("cancel", "job", str(failed), {"state": "failed"}, {"state": "canceled"}),
    ]


def test_what_changes_nothing_is_not_recorded(store: StoreUnderTest) -> None:
    people = Operator(store.store)
    job_id, other = store.add(), store.add()
    people.pause(job_id, by="ann")
    people.pause(job_id, by="ann")
    with pytest.raises(IllegalTransition):
        people.retry(job_id, by="ann")
    people.resume_queue("mail", by="ann")
    people.resume_lane("lane", by="ann")
    store.claim()
    people.cancel(other, by="ann")
    people.cancel(other, by="ann")
    assert [(entry.verb, entry.subject) for entry in changes(store)] == [
        ("pause", str(job_id)),
        ("cancel", str(other)),
    ]


def test_a_change_that_lost_a_race_is_not_recorded(store: StoreUnderTest) -> None:
    """The job is claimed between the read and the write of a pause: the pause is repeated, as a
    request to the worker, and recorded once."""
    job_id = store.add()
    steps = operator.operate(OperatorVerb.PAUSE, [job_id], "ann", None, "http")
    pause = steps.send(store.store.session.execute(next(steps)))
    assert pause.writes
    store.claim_one()
    read_again = steps.send(store.store.session.execute(pause))
    assert changes(store) == []
    request = steps.send(store.store.session.execute(read_again))
    with pytest.raises(StopIteration):
        steps.send(store.store.session.execute(request))
    (entry,) = changes(store)
    assert (entry.after, entry.via) == ({"stop_request": "pause"}, "http")


def test_a_refused_retry_leaves_no_record(store: StoreUnderTest) -> None:
    job_id = store.add(unique_key="k")
    store.end(store.claim_one(), OutcomeKind.FAIL)
    store.add(unique_key="k")
    with pytest.raises(UniqueKeyTaken):
        Operator(store.store).retry(job_id, by="ann")
    assert changes(store) == []


def test_changes_of_queues_lanes_and_limits_have_the_values_before(store: StoreUnderTest) -> None:
    people = Operator(store.store)
    people.set_weight("mail", 2.0, by="ann")
    people.set_queue_limit("mail", Limit(5), by="ann", reason="slow server")
    people.set_queue_limit("mail", Limit(7, Rate(100, 60.0)), by="bob")
    people.pause_queue("mail", "ann", "audit")
    people.resume_queue("mail", by="bob")
    people.pause_lane("lane", "ann")
    people.resume_lane("lane")
    people.set_key_limit("github", Limit(1))
    people.set_key_limit("github", Limit())
    found = changes(store)
    assert [(e.verb, e.kind, e.subject) for e in found] == [
        *(("set_weight", "queue", "mail"), ("set_limit", "queue", "mail")),
        *(("set_limit", "queue", "mail"), ("pause", "queue", "mail")),
        *(("resume", "queue", "mail"), ("pause", "lane", "lane"), ("resume", "lane", "lane")),
        *(("set_limit", "limit", "github"), ("set_limit", "limit", "github")),
    ]
    assert found[0].before is None
    assert found[2].before == {"weight": 2.0, "max_leases": 5}
    assert found[2].after == {"max_leases": 7, "rate_starts": 100, "rate_seconds": 60.0}
    assert found[1].reason == "slow server"
    assert found[4].before is not None
    assert (found[4].before["paused_by"], found[4].before["pause_reason"]) == ("ann", "audit")
    assert (found[6].by, found[8].before) == ("operator", {"max_leases": 1})


def test_what_the_system_does_by_itself_is_not_recorded(store: StoreUnderTest) -> None:
    """Pauses end, lanes wake up, leases expire: no operator has changed anything."""
    store.store.pause_lane("lane", "ann", None, store.now())
    store.add(target="lane")
    store.store.wake_lanes(10)
    store.claim_one()
    store.advance(60.0)
    store.store.recover(10, 0.0)
    assert changes(store) == []


def test_a_page_of_changes_is_filtered_and_bounded(
    store: StoreUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = Operator(store.store)
    ids = [store.add() for _ in range(4)]
    for number, job_id in enumerate(ids):
        people.pause(job_id, by="ann" if number % 2 else "bob")
    people.pause_queue("mail", "ann")
    assert [e.subject for e in changes(store, by="bob")] == [str(ids[0]), str(ids[2])]
    assert [e.subject for e in changes(store, kind=AuditKind.QUEUE)] == ["mail"]
    assert [e.by for e in changes(store, kind=AuditKind.JOB, subject=str(ids[1]))] == ["ann"]
    assert changes(store, verb="retry") == []
    first = store.store.audit(AuditFilter(limit=2))
    rest = store.store.audit(AuditFilter(limit=3, before=first.next))
    assert [e.subject for e in (*first.entries, *rest.entries)] == [
        "mail",
        *(str(job_id) for job_id in ids[::-1]),
    ]
    assert (rest.next, rest.looked_until) == (None, None)
    monkeypatch.setattr(audit, "WINDOW", 2)
    short_page = store.store.audit(AuditFilter(by="bob", limit=5))
    assert short_page.next is not None
    assert short_page.looked_until == store.now()


def test_old_changes_are_deleted(store: StoreUnderTest) -> None:
    people = Operator(store.store)
    people.pause_queue("a", "ann")
    store.advance(86400.0 * 10)
    people.pause_queue("b", "ann")
    assert store.store.apply_audit_retention(9.0, 100) == 1
    assert store.store.apply_audit_retention(9.0, 100) == 0
    assert [entry.subject for entry in changes(store)] == ["b"]


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (AuditFilter(subject="7"), "kind"),
        (AuditFilter(limit=0), "1 to 1000"),
        (AuditFilter(before=0), "`next`"),
        (AuditFilter(by=""), "by ''"),
    ],
)
def test_an_invalid_filter_of_changes_is_refused(
    store: StoreUnderTest, filter: AuditFilter, expected: str
) -> None:
    with pytest.raises(BadInput, match=expected):
        Operator(store.store).audit(filter)


def test_changes_of_tenants_are_in_the_control_store(store: StoreUnderTest) -> None:
    author = Author("ann", "cli", "new customer")
    store.store.add_tenant("acme", "home", author=author)
    store.store.set_tenant_share("acme", 2.0, None, author)
    store.store.remove_tenant("acme", author)
    found = changes(store, kind=AuditKind.TENANT)
    assert [(e.verb, e.subject, e.reason) for e in found] == [
        ("create", "acme", "new customer"),
        ("set_weight", "acme", "new customer"),
        ("drop", "acme", "new customer"),
    ]
    assert found[2].before is not None
    assert found[2].before["weight"] == 2.0
