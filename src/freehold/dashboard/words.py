"""Numbers, durations and states as people read them. Pure."""

from __future__ import annotations

import unicodedata

from freehold.model.state import Stage, State
from freehold.model.step import StepKind

#: Stages in words; a state with the same meaning has none.
_STAGES = {
    Stage.PENDING: "not submitted",
    Stage.SCHEDULED: "waits for its time",
    Stage.READY: "ready",
    Stage.LANE_HEAD: "ready, first of its lane",
    Stage.FOLLOWER: "waits in its lane",
    Stage.PARKED: "parked: no worker has its code",
    Stage.LEASED: "held by a worker",
    Stage.BACKOFF: "waits to be tried again",
    Stage.PAUSED: "paused",
    Stage.PAUSED_FOLLOWER: "paused in its lane",
    Stage.FAILED: "failed, blocks its lane",
    Stage.LIMITED: "waits for its limit",
    Stage.LANE_PAUSED: "waits: its lane is paused",
}
#: A shape for each state, so that colour is never the only sign.
SHAPES = {
    State.PENDING: "·",
    State.QUEUED: "○",
    State.ASSIGNED: "▷",
    State.RUNNING: "▶",
    State.PAUSED: "‖",
    State.SUCCEEDED: "✓",
    State.FAILED: "✕",
    State.CANCELED: "–",
}


_STEPS = {
    StepKind.RESULT: "done",
    StepKind.SLEEP: "sleep",
    StepKind.WAIT: "waits for a signal",
    StepKind.SIGNAL: "signal received",
    StepKind.TIMEOUT: "no signal in time",
}


#: States of flows and nodes that no job has, with their shape and colour.
_FLOW_STATES = {
    "open": ("▶", "running"),
    "not sealed": ("◌", "paused"),
    "canceling": ("–", "canceled"),
    "waiting": ("·", "pending"),
    "held": ("‖", "paused"),
}


def flow_words(word: str) -> str:
    """The state of a flow or node with its shape."""
    return f"{_FLOW_STATES[word][0]} {word}" if word in _FLOW_STATES else state_words(State(word))


def flow_class(word: str) -> str:
    """The colour of the state of a flow or node."""
    return _FLOW_STATES[word][1] if word in _FLOW_STATES else word


def step_words(kind: StepKind) -> str:
    return _STEPS[kind]


def sentence(text: str) -> str:
    """With a capital letter at its beginning; names inside keep theirs."""
    return text[:1].upper() + text[1:]


def stage_words(stage: Stage | None) -> str:
    return "" if stage is None else _STAGES[stage]


def state_words(state: State) -> str:
    return f"{SHAPES[state]} {state.value}"


def number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"


def bounded(value: int, bound: int) -> str:
    """Counts stop at a bound: from there on the number stands for more."""
    return f"{bound:,}+" if value >= bound else f"{value:,}"


def plural(value: int, noun: str, nouns: str | None = None) -> str:
    return f"{value:,} {noun if value == 1 else nouns or noun + 's'}"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def visible(text: str) -> str:
    """Control characters, and marks that change the direction of text, as visible signs."""
    if text.isprintable():  # as nearly every text: pages show thousands
        return text
    return "".join(_shown(each) for each in text)


def _shown(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co"):
        return character
    return f"⟨U+{ord(character):04X}⟩"
