"""Types that are read from JSON or from texts: each is learned here before anybody reads it.

msgspec learns a type when it first meets it, and other threads see what it has learned by then:
two that meet a type at once crash the process. Here one is learned at a time, and wholly; after
that any number of threads may read it.
"""

from __future__ import annotations

import os
import threading
from typing import Any, TypeVar, overload

import msgspec

T = TypeVar("T")

_learning = threading.Lock()


@overload
def decoder(kind: type[T]) -> msgspec.json.Decoder[T]: ...


@overload
def decoder(kind: Any) -> msgspec.json.Decoder[Any]: ...


def decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    with _learning:
        return msgspec.json.Decoder(kind)


def _in_child() -> None:
    """A thread that the child does not have may have been learning."""
    global _learning
    _learning = threading.Lock()


os.register_at_fork(after_in_child=_in_child)
