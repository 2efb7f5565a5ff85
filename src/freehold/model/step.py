"""Steps: named parts of a handler that run once for a job, however often the handler runs.

A step is known by its name, not by its position: code can be reordered, and steps added, between
two attempts of a job.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

import msgspec

from freehold.errors import BadInput
from freehold.model.names import check_key
from freehold.model.secrets import HIDDEN

#: Each later attempt reads all steps of its job.
STEPS_LIMIT = 1_000


class StepKind(StrEnum):
    """What a stored step stands for."""

    RESULT = "result"  # a value that a function returned, or a committed transaction
    SLEEP = "sleep"
    WAIT = "wait"  # for a signal that was not sent yet
    SIGNAL = "signal"  # the value of a signal
    TIMEOUT = "timeout"  # a wait that has ended without a signal
    GATHER = "gather"  # the flow and the ids of jobs that are waited for
    GATHERED = "gathered"  # how these jobs have ended


class Step(msgspec.Struct, frozen=True):
    """A stored step of a job. ``number`` is its position among the steps of the job."""

    name: str
    number: int
    kind: StepKind
    #: The token of the attempt that wrote it.
    token: int
    at: datetime
    #: The end of a wait.
    until: datetime | None = None
    #: JSON; None for kinds without a value.
    value: str | None = None
    #: The value is secret: no interface shows it.
    hidden: bool = False
    #: Of a wait, when the step was read.
    left_seconds: float | None = None

    def shown(self) -> Step:
        """Without a secret value."""
        if not self.hidden or self.value is None:
            return self
        return msgspec.structs.replace(self, value=f'"{HIDDEN}"')

    def __repr__(self) -> str:
        """Without the value: a repr often ends up in a log."""
        return f"<Step {self.number} {self.name!r}: {self.kind}>"


def check_step_name(name: object) -> str:
    return check_key("the name of a step", name)


def check_has_step(job_id: int, name: str, stored: Sequence[Step]) -> None:
    names = [step.name for step in stored]
    if name in names:
        return
    others = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
    raise BadInput(
        f"job {job_id} has no step {name!r}: "
        + (f"its steps are {others}" if names else "it has stored no steps")
    )


def check_steps_limit(job_id: int, count: int) -> None:
    if count >= STEPS_LIMIT:
        raise BadInput(
            f"job {job_id} has {count:,} steps, which is the limit: do more in one step, or let "
            "the job enqueue another one for the rest"
        )
