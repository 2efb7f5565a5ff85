"""How often the links between machines and the store fail, and how."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LinkNoise:
    """How often each fault happens, as shares of all batches."""

    fail_before: float = 0.0
    unknown_before: float = 0.0
    fail_after: float = 0.0
    duplicated: float = 0.0
    slow: float = 0.0
    late: float = 0.0


NO_NOISE = LinkNoise()


def random_noise(chance: random.Random) -> LinkNoise:
    """Some scenarios have faults of workers only, some also have noise on the links."""
    level = chance.choice((0.0, 0.01, 0.03))
    return LinkNoise(
        fail_before=level,
        unknown_before=level / 3,
        fail_after=level,
        duplicated=level / 2,
        slow=level,
        late=level / 2,
    )
