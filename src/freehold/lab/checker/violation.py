"""A promise that was broken."""

from __future__ import annotations

import msgspec


class Violation(msgspec.Struct, frozen=True):
    """Which promise (an invariant's or a requirement's name), of which job, and how."""

    rule: str
    job: int
    text: str
    at: int = 0

    def __str__(self) -> str:
        return (
            f"{self.rule}: job {self.job}: {self.text}" if self.job else f"{self.rule}: {self.text}"
        )
