"""Starlette's client for tests, which FastAPI has too."""

from __future__ import annotations

import warnings

with warnings.catch_warnings():
    # It prefers another package to httpx, which is what applications have.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient as TestClient
