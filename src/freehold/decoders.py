"""JSON decoders. A decoder is built here, under a lock, before any thread uses it.

msgspec analyses a type at its first use, and other threads see the half-built result: two threads
that use a new type at the same time crash the process. A finished decoder is safe for any number of
threads.
"""

from __future__ import annotations

import os
import threading
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")

_building = threading.Lock()


@overload
def decoder(kind: type[T]) -> msgspec.json.Decoder[T]: ...


@overload
def decoder(kind: Any) -> msgspec.json.Decoder[Any]: ...


def decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    with _building:
        return msgspec.json.Decoder(kind)


def _in_child() -> None:
    """A thread of the parent, which the child does not have, may hold the lock."""
    global _building
    _building = threading.Lock()


os.register_at_fork(after_in_child=_in_child)
