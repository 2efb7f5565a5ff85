"""assert_enqueued: which calls match, and the text of a failure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from freehold import Freehold
from freehold.testing import Harness
from freehold.worker.execution.context import Context

app = Freehold("sqlite:///never-opened.db")
WHEN = datetime(2031, 5, 1, tzinfo=UTC)


@app.task(name="send", queue="mail")
def send(
    to: str, subject: str = "none", *, at: datetime | None = None, ctx: Context | None = None
) -> None: ...


@app.task(name="other")
def other() -> None: ...


@pytest.fixture
def queue() -> Iterator[Harness]:
    with Harness(app) as harness:
        yield harness


def test_enqueued_lists_arguments_with_their_types(queue: Harness) -> None:
    send.enqueue("a", subject="hi")
    other.enqueue()
    send.enqueue("b", at=WHEN)
    assert queue.enqueued(send) == [{"to": "a", "subject": "hi"}, {"to": "b", "at": WHEN}]
    assert [call.job.task for call in queue.calls] == ["send", "other", "send"]


def test_a_job_that_has_run_still_counts_as_enqueued(queue: Harness) -> None:
    job = send.enqueue("a")
    queue.run()
    [found] = queue.assert_enqueued(send, "a")
    assert (found.id, found.state) == (job.id, "succeeded")


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((), {}), (("a",), {}), ((), {"to": "a"}), ((), {"subject": "none"}), (("a",), {"at": None})],
)
def test_arguments_left_out_match_any_value(
    queue: Harness, args: tuple[str, ...], kwargs: dict[str, object]
) -> None:
    send.enqueue("a")
    queue.assert_enqueued(send, *args, **kwargs)
    with pytest.raises(AssertionError, match="was enqueued with"):
        queue.assert_not_enqueued(send, *args, **kwargs)


def test_a_failure_shows_what_was_enqueued_instead(queue: Harness) -> None:
    send.using(delay=60, priority=3).enqueue("b")
    with pytest.raises(AssertionError) as failure:
        queue.assert_enqueued(send, "a")
    assert str(failure.value) == (
        "send was not enqueued with to='a'. Enqueued of it:\n"
        "  job 1: to='b', priority=3, delay_seconds=60"
    )
    with pytest.raises(
        AssertionError, match=r"(?s)other was not enqueued with any arguments.*nothing"
    ):
        queue.assert_enqueued(other)
    queue.assert_not_enqueued(other)
    queue.assert_not_enqueued(send, "a")


def test_options_are_given_by_using(queue: Harness) -> None:
    send.using(queue="bulk", delay=timedelta(minutes=1), unique_key="k").enqueue("a")
    queue.assert_enqueued(send.using(queue="bulk"), "a")
    queue.assert_enqueued(send.using(delay=60))
    queue.assert_not_enqueued(send.using(delay=61))
    queue.assert_not_enqueued(send.using(queue="mail"))
    with pytest.raises(AssertionError, match=r"(?s)queue='slow'.*queue='bulk'"):
        queue.assert_enqueued(send.using(queue="slow"))


def test_an_existing_job_is_not_a_new_call(queue: Harness) -> None:
    one = send.using(unique_key="k").enqueue("a")
    two = send.using(unique_key="k").enqueue("a")
    assert (two.id, two.created) == (one.id, False)
    assert len(queue.assert_enqueued(send)) == 1


def test_arguments_that_the_task_does_not_take_raise_type_error(queue: Harness) -> None:
    with pytest.raises(TypeError, match="nonsense"):
        queue.assert_enqueued(send, nonsense=1)


def test_a_context_in_front_of_the_arguments_is_not_compared(queue: Harness) -> None:
    @app.task(name="greet")
    def greet(ctx: Context, name: str) -> None: ...

    greet.enqueue("you")
    queue.assert_enqueued(greet, "you")
    queue.assert_not_enqueued(greet, "me")
