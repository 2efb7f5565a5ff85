"""The functions and the view of the schema that callers may use, from the migrations."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scripts.site.markdown import code, page, table
from scripts.site.paths import ROOT

MIGRATIONS = ROOT / "src" / "freehold" / "store" / "postgres" / "migrations"
#: The public ones, with what callers need to know. The others may change in any release.
FUNCTIONS = {
    "enqueue": "Stores a job in the caller's transaction: it exists if and only if that commits. Arguments are checked "
    "for size and form, not against the task's signature. It sends no notification: an idle worker finds the job by "
    "polling, within 10 seconds. `created` is false if a key returned an existing job. `start_by` is an option of the "
    "other interfaces only.",
    "send_signal": "Sends a [signal](../steps.md#signals) in the caller's transaction. False: it was sent before, and "
    "keeps its first value.",
    "backlog": "For autoscalers: how many jobs can be claimed now, in one queue or in all, counted up to 10,000; none "
    "of a paused queue. It reads the index of the claim only.",
}
INTRO = """Public in the schema `freehold` (or the one of `store.schema`, or of a tenant: `freehold_t_acme`): three functions
and one view. Other tables and functions can be read in psql, but may change in any release.
[Roles](../deploy.md#postgresql-roles) has the rights."""


def sql_page() -> str:
    functions = [
        f"## freehold.{name}\n\n{text}\n\n" + code(_definition(name), "sql")
        for name, text in FUNCTIONS.items()
    ]
    example = code(
        "select id, created from freehold.enqueue('shop.bill', '{\"order\": 42}');", "sql"
    )
    rows = [[f"`{name}`", _MEANINGS.get(name, "")] for name in view_columns()]
    view = (
        "## freehold.jobs\n\nThe live jobs, with the words of their state and stage. On SQLite it is the view `jobs` of "
        "the file. Finished jobs are in the table `history`.\n\n"
        + table(["column", "meaning"], rows)
    )
    return page("SQL", INTRO, functions[0] + "\n" + example, *functions[1:], view)


def _definition(name: str) -> str:
    """The head of the newest definition."""
    found = ""
    for text in _texts():
        for each in re.finditer(rf"create (?:or replace )?function \{{schema\}}\.{name}\(", text):
            end = text.index("\n    language", each.end())
            found = text[each.start() : end]
    return re.sub(r"create (or replace )?function ", "", found).replace("{schema}", "freehold")


def view_columns() -> list[str]:
    newest = ""
    for text in _texts():
        for each in re.finditer(r"view \{schema\}\.jobs as\s+select (.*?)\s+from", text, re.DOTALL):
            newest = each[1]
    return [part.strip().rpartition(".")[2] for part in newest.split(",")]


def _texts() -> Iterator[str]:
    return (path.read_text("utf-8") for path in sorted(MIGRATIONS.glob("*.sql")))


_MEANINGS = {
    "state": "what users see: pending, queued, assigned, running, paused, failed",
    "stage": "what the row waits for: see [stages](../architecture.md#stages)",
    "target": "its lane",
    "attempt": "attempts so far, the running one included",
    "lost_attempts": "attempts whose worker was lost",
    "run_at": "not before this time",
    "lease_owner": "the worker that holds it",
    "lease_token": "increases with every claim",
    "heartbeat_at": "when the lease was renewed last",
    "started_at": "set once it has run for 250 ms",
    "stop_request": "what an operator asked of its worker: cancel or pause",
    "reason": "why it is paused, parked, waiting or failed",
    "waiting_key": "a key that it holds until a worker takes it",
    "start_by": "it is canceled if it has not started by then",
    "waits_for": "what a suspended job waits for: a sleep or a signal",
    "policy": "its rules that differ from the defaults, as JSON",
    "args": "the arguments, secret ones included",
}
