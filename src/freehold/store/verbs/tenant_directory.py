"""The directory of tenants: their shard, state, weight and moves."""

from __future__ import annotations

from freehold.errors import Refused
from freehold.model.audit import AuditKind, Author
from freehold.model.tenant import Tenant, TenantState
from freehold.model.timestamps import time_of
from freehold.store.statements import Row, Statement, Verb, read, together, write
from freehold.store.verbs import audit


def tenants() -> Verb[list[Tenant]]:
    """The directory of tenants, by name. Only the control store has one."""
    rows = yield from read("tenants")
    return [_tenant_of(row) for row in rows]


def tenant(name: str) -> Verb[Tenant | None]:
    """One tenant of the directory."""
    rows = yield from read("tenant", tenant=name)
    return _tenant_of(rows[0]) if rows else None


def add_tenant(
    name: str,
    shard: str,
    weight: float = 1.0,
    max_slots: int | None = None,
    author: Author | None = None,
) -> Verb[Tenant | None]:
    """None: a tenant of this name exists already."""
    values = {"shard": shard, "weight": weight, "max_slots": max_slots}
    record = audit.of_setting(author, "create", AuditKind.TENANT, name, values)
    *_, rows = yield from together(*record, Statement("add_tenant", {"tenant": name, **values}))
    return _tenant_of(rows[0]) if rows else None


def check_room_for_tenants() -> Verb[None]:
    """Raises Refused where a limit over all queues exists that would not apply to tenants."""
    has_limit, _ = (yield from read("shared_limit_conflict"))[0]
    if has_limit:
        raise Refused(
            "this store has a limit over all queues, which with SQLite would not apply to tenants, "
            "because each is a file of its own: remove it first (`freehold limits all`), or use "
            "PostgreSQL"
        )


def remove_tenant(name: str, author: Author | None = None) -> Verb[bool]:
    """Returns whether it existed."""
    record = audit.of_setting(author, "drop", AuditKind.TENANT, name)
    *_, rows = yield from together(*record, Statement("remove_tenant", {"tenant": name}))
    return bool(rows)


def set_tenant_state(
    name: str,
    state: TenantState,
    note: str | None = None,
    before: TenantState | None = None,
    author: Author | None = None,
) -> Verb[bool]:
    """``note``: author and reason. False: there is no such tenant, it is moving, or its state is
    another than ``before``."""
    verb = "pause" if state is TenantState.PAUSED else "resume"
    record = audit.of_setting(author, verb, AuditKind.TENANT, name, {"state": state})
    values = {"tenant": name, "state": state.value, "note": note, "before": before}
    *_, rows = yield from together(*record, Statement("set_tenant_state", values))
    return bool(rows)


def set_tenant_share(
    name: str, weight: float, max_slots: int | None, author: Author | None = None
) -> Verb[bool]:
    """Its share of the workers, and the maximum of slots in one process."""
    values = {"weight": weight, "max_slots": max_slots}
    record = audit.of_setting(author, "set_weight", AuditKind.TENANT, name, values)
    share = Statement("set_tenant_share", {"tenant": name, **values})
    *_, rows = yield from together(*record, share)
    return bool(rows)


def begin_move(name: str, shard: str, note: str | None = None) -> Verb[bool]:
    """Mark it as moving. False: it is moving elsewhere, or its last move is not cleaned up."""
    rows = yield from write("begin_move", tenant=name, shard=shard, note=note)
    return bool(rows)


def cancel_move(name: str, shard: str, note: str | None = None) -> Verb[bool]:
    """It moves back to its shard. False: it is elsewhere, or was not moving away."""
    rows = yield from write("cancel_move", tenant=name, shard=shard, note=note)
    return bool(rows)


def switch_move(name: str, shard: str) -> Verb[bool]:
    """It is on the new shard, still moving. False: it was not moving there any more."""
    rows = yield from write("switch_move", tenant=name, shard=shard)
    return bool(rows)


def end_move(name: str, shard: str, state: TenantState, note: str | None = None) -> Verb[bool]:
    """It is usable on its shard. False: it was not arriving there any more."""
    rows = yield from write("end_move", tenant=name, shard=shard, state=state.value, note=note)
    return bool(rows)


def clear_move(name: str) -> Verb[None]:
    """Its old shard has nothing of it any more."""
    yield from write("clear_move", tenant=name)


def _tenant_of(row: Row) -> Tenant:
    """Columns as in `_tenant_columns.sql`."""
    name, shard, state, weight, max_slots, created_at, note, moving_to, moved_from = row
    return Tenant(
        name=name,
        shard=shard,
        state=TenantState(state),
        weight=weight,
        max_slots=max_slots,
        created_at=time_of(created_at),
        note=note,
        moving_to=moving_to,
        moved_from=moved_from,
    )
