"""JSON decoders. A decoder is built here, under a lock, before any thread uses it.

msgspec analyses a type at its first use, and other threads see the half-built result: two threads
that use a new type at the same time crash the process. A finished decoder is safe for any number of
threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, overload

import msgspec

from freehold.fork_safety import lock_of

T = TypeVar("T")
#: Makes a value of a type that msgspec does not know: (type, decoded JSON) -> value.
Hook: TypeAlias = Callable[[Any, Any], Any]


class _Building:
    def __init__(self) -> None:
        self._lock = lock_of(self)

    def build(self, kind: Any, hook: Hook | None) -> msgspec.json.Decoder[Any]:
        with self._lock:
            return msgspec.json.Decoder(kind, dec_hook=hook)


_building = _Building()


@overload
def decoder(kind: type[T], hook: Hook | None = None) -> msgspec.json.Decoder[T]: ...


@overload
def decoder(kind: Any, hook: Hook | None = None) -> msgspec.json.Decoder[Any]: ...


def decoder(kind: Any, hook: Hook | None = None) -> msgspec.json.Decoder[Any]:
    return _building.build(kind, hook)
