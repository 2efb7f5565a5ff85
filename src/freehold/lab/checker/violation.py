"""A violated rule."""

from __future__ import annotations

import msgspec


class Violation(msgspec.Struct, frozen=True):
    """The rule (the name of an invariant or a requirement), the job, and what happened."""

    rule: str
    job: int
    text: str
    at: int = 0

    def __str__(self) -> str:
        return (
            f"{self.rule}: job {self.job}: {self.text}" if self.job else f"{self.rule}: {self.text}"
        )
