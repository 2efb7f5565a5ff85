from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.testing.rig import Rig


@pytest.fixture
def rig() -> Iterator[Rig]:
    made = Rig()
    yield made
    made.app.close()
