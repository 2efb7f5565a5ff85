"""The audit: every change by an operator, with its author, interface, reason, and both values."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

#: The author of a change by a Python program that gives no name.
OPERATOR = "operator"
#: Interfaces.
PYTHON = "python"
CLI = "cli"
HTTP = "http"
DASHBOARD = "dashboard"
#: The configured weights and limits, which a worker writes when it starts.
SETTINGS = "settings"
#: A manager, which changes the number of its workers.
MANAGER = "manager"


class AuditKind(StrEnum):
    """What was changed."""

    JOB = "job"
    QUEUE = "queue"
    LANE = "lane"
    LIMIT = "limit"
    TENANT = "tenant"
    BULK = "bulk"
    RETENTION = "retention"
    SCHEDULE = "schedule"
    #: The workers of a manager, by its name: the manager itself changes their number.
    FLEET = "fleet"
    FLOW = "flow"


class Author(msgspec.Struct, frozen=True):
    """Of a change: by name, the interface, and the reason."""

    by: str
    via: str
    reason: str | None = None


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One change. ``subject`` is the id of a job, or a name. ``before`` is null for what did not
    exist."""

    id: int
    at: datetime
    by: str
    via: str
    verb: str
    kind: AuditKind
    subject: str
    reason: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which changes to list. ``subject`` needs a ``kind``. ``before``: the cursor that the previous
    page returned."""

    by: str | None = None
    verb: str | None = None
    kind: AuditKind | None = None
    subject: str | None = None
    before: int | None = None
    limit: int = 50


class AuditPage(msgspec.Struct, frozen=True):
    """Newest first. ``next`` is the cursor of the next page, None after the last. A page reads a
    bounded number of rows: ``looked_until`` is the time of the oldest change that was examined,
    None if all have been."""

    entries: tuple[AuditEntry, ...]
    next: int | None
    looked_until: datetime | None
