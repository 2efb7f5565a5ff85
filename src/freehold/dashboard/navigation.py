"""The entries of the navigation, with the role that each needs and its key."""

from __future__ import annotations

from typing import NamedTuple

from freehold.http_auth import Role

#: Groups of the navigation; they are sorted by the number.
WORK, ORDER, PROCESSES, RECORD, SERVICE = (
    "1 Work",
    "2 Order",
    "3 Processes",
    "4 Record",
    "5 Service",
)


class Section(NamedTuple):
    """``key``: after g, it opens the page. A new page also gets an icon in `icons.html`."""

    name: str
    path: str
    key: str
    group: str
    role: Role = Role.VIEWER
    #: Not for a caller of one tenant.
    of_all: bool = False


SECTIONS = (
    Section("Overview", "", "o", WORK),
    Section("Jobs", "jobs", "j", WORK),
    Section("Failures", "failures", "f", WORK),
    Section("Batches", "batches", "h", WORK),
    Section("Workflows", "workflows", "k", WORK),
    Section("Queues", "queues", "q", ORDER),
    Section("Lanes", "lanes", "l", ORDER),
    Section("Limits", "limits", "i", ORDER),
    Section("Schedules", "schedules", "c", ORDER),
    Section("Tasks", "tasks", "t", PROCESSES),
    Section("Workers", "workers", "w", PROCESSES),
    Section("Events", "events", "e", RECORD),
    Section("Bulk", "bulk", "b", RECORD),
    Section("Audit", "audit", "a", RECORD, Role.OPERATOR),
    Section("Tenants", "tenants", "n", SERVICE),
    Section("System", "system", "s", SERVICE, Role.ADMIN, of_all=True),
)
