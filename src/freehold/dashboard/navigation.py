"""The entries of the navigation, with the role that each needs and its key."""

from __future__ import annotations

from typing import NamedTuple

from freehold.http_auth import Role


class Section(NamedTuple):
    """``key``: after g, it opens the page."""

    name: str
    path: str
    key: str
    role: Role = Role.VIEWER
    #: Not for a caller of one tenant.
    of_all: bool = False


SECTIONS = (
    Section("Overview", "", "o"),
    Section("Jobs", "jobs", "j"),
    Section("Failures", "failures", "f"),
    Section("Queues", "queues", "q"),
    Section("Lanes", "lanes", "l"),
    Section("Limits", "limits", "i"),
    Section("Tasks", "tasks", "t"),
    Section("Workers", "workers", "w"),
    Section("Schedules", "schedules", "c"),
    Section("Events", "events", "e"),
    Section("Bulk", "bulk", "b"),
    Section("Tenants", "tenants", "n"),
    Section("System", "system", "s", Role.ADMIN, of_all=True),
    Section("Audit", "audit", "a", Role.OPERATOR),
)
