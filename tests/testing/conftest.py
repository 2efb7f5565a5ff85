from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.testing.virtual_app import VirtualApp


@pytest.fixture
def virtual() -> Iterator[VirtualApp]:
    made = VirtualApp()
    yield made
    made.app.close()
