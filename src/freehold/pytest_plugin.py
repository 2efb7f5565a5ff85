"""A plugin of pytest with the fixture ``freehold_queue``, which pytest loads by its entry point.

The app is that of the setting ``freehold_app = "module:attribute"``, or of a fixture with this name
that overrides the one here. Nothing else of the package is imported until a test needs it.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from freehold.app import Freehold
    from freehold.testing import Harness


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("freehold_app", "the app of the fixture freehold_queue, as module:attribute")


@pytest.fixture
def freehold_app(pytestconfig: pytest.Config) -> Freehold:
    """The app of the setting ``freehold_app``."""
    from freehold.app import Freehold

    module, colon, attribute = str(pytestconfig.getini("freehold_app")).partition(":")
    if not colon:
        raise pytest.UsageError(
            "freehold_queue needs an app: set freehold_app = module:attribute in the settings of "
            "pytest, or define a fixture freehold_app that returns it"
        )
    found: Any = getattr(importlib.import_module(module), attribute)
    if not isinstance(found, Freehold):
        raise pytest.UsageError(f"freehold_app = {module}:{attribute} is not an app of Freehold")
    return found


@pytest.fixture
def freehold_deps() -> Any:
    """The ``ctx.deps`` of handlers. Override it in place of the lifespan of the app."""
    from freehold.lifespan import NOT_OPENED

    return NOT_OPENED


@pytest.fixture
def freehold_queue(freehold_app: Freehold, freehold_deps: Any) -> Iterator[Harness]:
    """The app with its jobs in memory and on virtual time: see docs/testing.md."""
    from freehold.testing import Harness

    with Harness(freehold_app, deps=freehold_deps) as queue:
        yield queue
