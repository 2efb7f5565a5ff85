"""What a suspended job waits for, as it is stored with it: sleep/NAME, signal/NAME, gather/FLOW;
and a pending job that is a node of a workflow: flow/FLOW.

A suspended job waits in the queue like a delayed one. It holds no slot and no limit, keeps its
lane, and its attempt is not counted. Waking it early is harmless: its handler runs up to the wait
and is suspended again.
"""

from __future__ import annotations

_SLEEP = "sleep"
_SIGNAL = "signal"
_GATHER = "gather"
_FLOW = "flow"
_TEXTS = {
    _SLEEP: "sleeps",
    _SIGNAL: "waits for the signal",
    _GATHER: "waits for the jobs of gather",
    _FLOW: "waits for its sources in flow",
}


def sleep(name: str) -> str:
    return f"{_SLEEP}/{name}"


def signal(name: str) -> str:
    return f"{_SIGNAL}/{name}"


def signal_of(waits_for: str) -> str | None:
    """The signal that is waited for; None for anything else."""
    return waits_for.removeprefix(f"{_SIGNAL}/") if waits_for.startswith(f"{_SIGNAL}/") else None


def gather(flow: int) -> str:
    return f"{_GATHER}/{flow}"


def sources(flow: int) -> str:
    return f"{_FLOW}/{flow}"


def lock_of(waits_for: str) -> str | None:
    """The name whose lock a suspension takes, and so does what ends the wait; None for a sleep."""
    kind, _, name = waits_for.partition("/")
    return name if kind == _SIGNAL else waits_for if kind == _GATHER else None


def flow_of(waits_for: str | None) -> int | None:
    """The flow whose jobs are waited for; None for anything else."""
    kind, _, number = (waits_for or "").partition("/")
    return int(number) if kind in (_GATHER, _FLOW) and number.isdecimal() else None


def sentence(waits_for: str) -> str:
    """For people."""
    kind, _, name = waits_for.partition("/")
    separator = ": " if flow_of(waits_for) is None else " "
    return f"{_TEXTS.get(kind, kind)}{separator}{name}"
