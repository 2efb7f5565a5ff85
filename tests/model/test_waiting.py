"""Options for keys that a job holds until a worker takes it: what they mean, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from freehold.errors import BadInput
from freehold.model.waiting import (
    Debounce,
    Throttle,
    Unique,
    Waiting,
    WaitingOption,
    chosen,
    waiting_of,
    with_waiting_options,
)

pytestmark = pytest.mark.requirement("N4")


def test_keys_belong_to_their_task_and_kind() -> None:
    options: list[WaitingOption] = [Unique("k", "start"), Debounce("k", 1), Throttle("k", 1)]
    keys = [w.key for task in ("a", "b") for o in options if (w := waiting_of(task, o)) is not None]
    assert keys == [
        *("unique/a/k", "debounce/a/k", "throttle/a/k"),
        *("unique/b/k", "debounce/b/k", "throttle/b/k"),
    ]


def test_a_key_until_the_end_is_no_waiting_key() -> None:
    assert waiting_of("t", Unique("k")) is None


def test_times_can_be_spans() -> None:
    option = Debounce("k", timedelta(minutes=1), timedelta(minutes=5))
    assert waiting_of("t", option) == Waiting("debounce/t/k", ("args", "meta", "run_at"), 300.0)
    assert waiting_of("t", Throttle("k", timedelta(minutes=1))) == Waiting(
        "throttle/t/k", ("args", "meta"), throttle_seconds=60.0
    )


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "an empty key": (lambda: Unique(""), "unique key '' cannot be used"),
    "an unknown until": (lambda: Unique("k", "now"), "choose end or start"),  # type: ignore[arg-type]
    "replace as text": (lambda: Unique("k", "start", "args"), "give a tuple"),  # type: ignore[arg-type]
    "an unknown value": (lambda: Unique("k", "start", ("queue",)), "choose of args"),  # type: ignore[arg-type]
    "replace until the end": (lambda: Unique("k", replace=("args",)), 'needs until="start"'),
    "a debounce of no time": (lambda: Debounce("k", 0), "at least 0.001 seconds"),
    "a debounce of text": (lambda: Debounce("k", "5"), "at least 0.001 seconds"),  # type: ignore[arg-type]
    "a debounce without an end": (lambda: Debounce("k", float("inf")), "at most ten years"),
    "a limit below the debounce": (lambda: Debounce("k", 9, 8), "at_most=8 is less than"),
    "a throttle of no number": (lambda: Throttle("k", float("nan")), "at least 0.001 seconds"),
    "a throttle of true": (lambda: Throttle("k", True), "at least 0.001 seconds"),
}


@pytest.mark.parametrize(("make", "why"), BAD.values(), ids=BAD.keys())
def test_bad_options_are_refused_with_the_reason(make: Callable[[], Any], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        make()


TOGETHER: dict[str, tuple[dict[str, Any], str]] = {
    "two kinds": ({"debounce": Debounce("k", 1), "throttle": Throttle("k", 1)}, "exclude each"),
    "a unique key beside": ({"debounce": Debounce("k", 1), "unique_key": "k"}, "exclude each"),
    "two unique keys": ({"unique": Unique("k"), "unique_key": "k"}, "exclude each"),
    "an idempotency key": (
        {"unique": Unique("k", "start"), "idempotency_key": "i"},
        "idempotency_key excludes",
    ),
    "a time": ({"throttle": Throttle("k", 1), "has_time": True}, "leave out run_at and delay"),
    "a key in place of an option": ({"unique": "k"}, "give a Unique of freehold"),
}


@pytest.mark.parametrize(("given", "why"), TOGETHER.values(), ids=TOGETHER.keys())
def test_options_that_contradict_each_other_are_refused(given: dict[str, Any], why: str) -> None:
    nothing = dict.fromkeys(("unique", "debounce", "throttle", "unique_key", "idempotency_key"))
    with pytest.raises(BadInput, match=why):
        chosen(**{**nothing, "has_time": False, **given})


def test_a_unique_key_until_the_end_may_have_an_idempotency_key_and_a_time() -> None:
    option = Unique("k")
    assert chosen(option, None, None, unique_key=None, idempotency_key="i", has_time=True) is option


def test_flat_options_are_those_of_python() -> None:
    flat: dict[str, Any] = {
        "unique_key": "k",
        "unique_until": "start",
        "replace": ["args"],
        "priority": None,
    }
    assert with_waiting_options(flat) == {"unique": Unique("k", "start", ("args",))}
    flat = {"debounce_key": "k", "debounce_seconds": 1.0, "debounce_at_most_seconds": 2.0}
    assert with_waiting_options(flat) == {"debounce": Debounce("k", 1.0, 2.0)}
    flat = {"throttle_key": "k", "throttle_seconds": 1.0, "queue": "q"}
    assert with_waiting_options(flat) == {"throttle": Throttle("k", 1.0), "queue": "q"}
    assert with_waiting_options({"unique_key": "k"}) == {"unique_key": "k"}


@pytest.mark.parametrize(
    ("flat", "why"),
    [
        ({"unique_until": "start"}, "need a unique_key"),
        ({"replace": ("args",)}, "need a unique_key"),
        ({"debounce_key": "k"}, "belong together"),
        ({"debounce_seconds": 1.0}, "belong together"),
        ({"debounce_at_most_seconds": 1.0}, "belong together"),
        ({"throttle_key": "k"}, "belong together"),
        ({"throttle_seconds": 1.0}, "belong together"),
    ],
)
def test_half_an_option_is_refused(flat: dict[str, Any], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        with_waiting_options(flat)
