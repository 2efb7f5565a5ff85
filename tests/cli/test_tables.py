"""Tables fit the terminal: names are shortened in the middle, and no word is broken."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console, RenderableType

from freehold.cli.job_view import job_view
from freehold.cli.render import causes_text, job_table, queue_table
from freehold.cli.table import ListTable
from freehold.cli.text import shorten_middle
from freehold.model.explain import Cause
from freehold.model.job import ErrorInfo
from freehold.model.limit import Limit, Rate
from freehold.model.outcome import OutcomeKind
from freehold.model.plural import count
from freehold.operator import Operator
from freehold.store.types import QUEUE_LIST_BOUND, JobFilter, QueueInfo
from tests.cli.shell import Shell

TRACE = 'Traceback (most recent call last):\n  File "/srv/app/tasks.py", line 4712, in call_api\n'


def lines(shown: RenderableType, width: int = 80) -> list[str]:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    with console.capture() as captured:
        console.print(shown)
    return [line.rstrip() for line in captured.get().splitlines()]


def failed_job(shell: Shell) -> int:
    job = shell.store.add(task="reports.monthly.render_invoice_pages")
    error = ErrorInfo("TimeoutError", "no response from api.example.org", TRACE + "TimeoutError")
    shell.store.end(shell.store.claim_one(), OutcomeKind.FAIL, error=error)
    return job


def test_a_list_of_jobs_has_one_line_for_each(sqlite_shell: Shell) -> None:
    failed_job(sqlite_shell)
    for name in ("tasks.slow_async", "tasks.slow_thread", "tasks.slow_process"):
        sqlite_shell.store.add(task=name, queue="a-queue-with-a-long-name", target=name)
    operator = Operator(sqlite_shell.store.store)
    head, rule, *rows = lines(job_table(operator.jobs(JobFilter()), {}, {}, operator.now()))
    assert len(rows) == 4
    assert max(map(len, (head, rule, *rows))) <= 80
    assert [row.split()[1][-5:] for row in rows] == ["ocess", "hread", "async", "pages"]
    assert "TimeoutError" in rows[-1]


def test_a_column_without_values_is_left_out(sqlite_shell: Shell) -> None:
    sqlite_shell.store.add()
    head = sqlite_shell("jobs").out.splitlines()[0]
    assert head.split() == ["id", "task", "queue", "state", "try", "age", "when"]


def test_a_traceback_stands_below_the_timeline_in_full_width(sqlite_shell: Shell) -> None:
    job = failed_job(sqlite_shell)
    operator = Operator(sqlite_shell.store.store)
    found = lines(
        job_view(operator.show(job), operator.now(), show_args=False, show_trace=True), 80
    )
    assert max(map(len, found)) <= 80
    assert '  File "/srv/app/tasks.py", line 4712, in call_api' in found
    start = found.index("Traceback (most recent call last):")
    assert found[start - 1].startswith("traceback of attempt 1, ")
    assert any("TimeoutError: no response" in line for line in found[:start])


def test_queues_with_weight_limit_and_pause_keep_their_headings_and_numbers() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    queue = QueueInfo(
        name="monthly-reports",
        ready=QUEUE_LIST_BOUND,
        leased=QUEUE_LIST_BOUND,
        not_ready=QUEUE_LIST_BOUND,
        oldest_ready_at=now - timedelta(hours=23, minutes=59),
        paused_at=now - timedelta(minutes=59),
        paused_by="ann",
        pause_reason="the reports of last month are wrong",
        paused_until=None,
        weight=0.25,
        limit=Limit(7, Rate(100, seconds=60)),
        bound=QUEUE_LIST_BOUND,
    )
    for table in (queue_table([queue], now), queue_table([queue], now).on_one_line()):
        found = lines(table)
        assert max(map(len, found)) <= 80
        words = {word for line in found for word in line.split()}
        assert {"ready", "leased", "not", "oldest", "weight", "limit", "paused"} <= words
        assert {"1,000+", "0.25"} <= words
        assert any("23 h 59 min" in line for line in found)


def test_an_explanation_is_indented_also_where_it_continues() -> None:
    cause = Cause("lane", "its lane is held by job 4, " + "which failed " * 9, "resume job 4")
    title, *causes, remedy = lines(causes_text(5, [cause]))
    assert (title, remedy) == ("job 5", "    → resume job 4")
    assert len(causes) > 1
    assert all(line.startswith("  ") for line in causes)


def test_the_timeline_does_not_repeat_an_error_that_is_the_reason(sqlite_shell: Shell) -> None:
    job = sqlite_shell.store.add()
    error = ErrorInfo("BadArguments", "unknown field `nam`")
    reason = f"waits for a worker whose code fits: {error.message}"
    sqlite_shell.store.end(
        sqlite_shell.store.claim_one(), OutcomeKind.FAIL, reason=reason, error=error
    )
    _, _, timeline = sqlite_shell("job", "show", str(job)).out.partition("time (UTC)")
    assert timeline.count("unknown field") == 1
    assert "BadArguments" not in timeline


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_table_fits_its_width_and_wraps_between_words(width: int) -> None:
    table = ListTable("id", "name", "why", right=("id",), names=("name",), wrapped=("why",))
    table.add_row("12345", "a.rather.long.name_of_a_task", "words that can be wrapped " * 4)
    found = lines(table, width)
    assert max(map(len, found)) <= width
    words = " ".join(found).split()
    assert words.count("wrapped") == 4


@pytest.mark.parametrize(
    ("width", "expected"), [(16, "tasks.slow_async"), (12, "task…w_async"), (1, "…")]
)
def test_names_are_shortened_in_the_middle(width: int, expected: str) -> None:
    assert shorten_middle("tasks.slow_async", width) == expected


def test_nouns_agree_with_their_number() -> None:
    assert [count(n, "job") for n in (0, 1, 2000)] == ["0 jobs", "1 job", "2,000 jobs"]
    assert count(2, "entry", "entries") == "2 entries"
