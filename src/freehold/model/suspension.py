"""What a suspended job waits for, as it is stored with it: sleep/NAME or signal/NAME.

A suspended job waits in the queue like a delayed one. It holds no slot and no limit, keeps its
lane, and its attempt is not counted. Waking it early is harmless: its handler runs up to the wait
and is suspended again.
"""

from __future__ import annotations

_SLEEP = "sleep"
_SIGNAL = "signal"
_TEXTS = {_SLEEP: "sleeps", _SIGNAL: "waits for the signal"}


def sleep(name: str) -> str:
    return f"{_SLEEP}/{name}"


def signal(name: str) -> str:
    return f"{_SIGNAL}/{name}"


def signal_of(waits_for: str) -> str | None:
    """The signal that is waited for; None for anything else."""
    return waits_for.removeprefix(f"{_SIGNAL}/") if waits_for.startswith(f"{_SIGNAL}/") else None


def sentence(waits_for: str) -> str:
    """For people."""
    kind, _, name = waits_for.partition("/")
    return f"{_TEXTS.get(kind, kind)}: {name}"
