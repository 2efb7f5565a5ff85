"""The events of jobs, the outcomes of attempts, and the causes that `job explain` prints."""

from __future__ import annotations

import ast

from freehold.model.history import EventKind
from freehold.model.outcome import OutcomeKind
from scripts.site.markdown import page, table
from scripts.site.paths import ROOT

EVENTS = {
    EventKind.CREATED: "the job was stored",
    EventKind.LEASED: "a worker claimed it",
    EventKind.STARTED: "its handler has run for 250 ms",
    EventKind.SUCCEEDED: "its handler returned",
    EventKind.RETRIED: "the attempt failed; the job waits for its backoff",
    EventKind.LEASE_LOST: "the lease expired, because its worker died, froze or was cut off",
    EventKind.SNOOZED: "the handler raised `Snooze`",
    EventKind.SUSPENDED: "the handler waits: a sleep or a signal",
    EventKind.GIVEN_BACK: "a worker returned it before its handler started",
    EventKind.DRAINED: "its worker was stopped; the job returned to the queue",
    EventKind.PAUSED: "it was paused, by an operator, its handler, a drain or the queue",
    EventKind.CANCELED: "it was canceled",
    EventKind.FAILED: "it failed, and is not tried again",
    EventKind.ENQUEUED: "a pending job was put into its queue",
    EventKind.CANCEL_REQUESTED: "an operator asked its worker to cancel it",
    EventKind.PAUSE_REQUESTED: "an operator asked its worker to pause it",
    EventKind.RESUMED: "an operator resumed it",
    EventKind.RETRIED_BY_HAND: "an operator retried it",
    EventKind.AMENDED: "an operator changed its priority, queue, time or attempts",
    EventKind.PARKED: "a worker claimed it and cannot run it: an unknown task, or arguments that do not fit",
    EventKind.UNPARKED: "a worker that may run it has started",
}
#: Columns of the job's row, not stored as events, and so not in the stream of the API.
ROUTINE = {EventKind.CREATED, EventKind.LEASED, EventKind.STARTED, EventKind.SUCCEEDED}
INTRO = """What a job's timeline shows (`freehold job show`), and what `GET /api/events` sends. Routine changes are
columns of the job's row: they are in the timeline and not in the stream."""


def events_page() -> str:
    rows = [
        [f"`{kind}`", "routine" if kind in ROUTINE else "event", EVENTS.get(kind, "")]
        for kind in EventKind
    ]
    outcomes = ", ".join(f"`{kind}`" for kind in OutcomeKind)
    causes = [[f"`{code}`", text] for code, text in causes_of_waiting().items()]
    return page(
        "Events",
        INTRO,
        table(["kind", "stored as", "meaning"], rows),
        "## Outcomes\n\nHow one attempt ended, in `EndedAttempt.outcome.kind` and as the label `outcome` of "
        f"`freehold_finished_total`: {outcomes}.\n",
        "## Causes\n\nThe codes of `freehold job explain` and `GET /api/jobs/{id}/explain`: why a job is not running. "
        "The text of a cause has its figures and its remedy.\n\n"
        + table(["code", "text begins"], causes),
    )


def causes_of_waiting() -> dict[str, str]:
    """The code and the constant part of the text of each `Cause` in the source."""
    path = ROOT / "src" / "freehold" / "model" / "explain.py"
    found: dict[str, str] = {}
    for function in ast.parse(path.read_text("utf-8")).body:
        texts = _assigned_texts(function)
        for node in ast.walk(function):
            if not isinstance(node, ast.Call) or getattr(node.func, "id", "") != "Cause":
                continue
            code, text = node.args[:2]
            if isinstance(code, ast.Constant):
                name = text.id if isinstance(text, ast.Name) else ""
                found.setdefault(str(code.value), texts.get(name) or _beginning(text))
    return found


def _assigned_texts(function: ast.AST) -> dict[str, str]:
    return {
        node.targets[0].id: _beginning(node.value)
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }


def _beginning(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        parts = [v.value if isinstance(v, ast.Constant) else "…" for v in node.values]
        return "".join(map(str, parts))
    return ""
