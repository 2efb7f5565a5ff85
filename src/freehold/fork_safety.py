"""Locks that a forked child finds open.

A thread of the parent may hold one at the moment of the fork; in the child there is no such
thread, and nobody would ever release it.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Lockable(Protocol):
    _lock: AbstractContextManager[Any]


_every: weakref.WeakSet[Lockable] = weakref.WeakSet()
_adding = threading.Lock()


def lock_of(owner: Lockable) -> AbstractContextManager[Any]:
    """For its ``_lock``, which is another one in every child. As it is, and not wrapped: Ctrl-C
    between taking one and saying so would leave it taken for ever."""
    with _adding:
        _every.add(owner)
    return threading.RLock()


def _in_child() -> None:
    global _adding
    _adding = threading.Lock()
    for owner in tuple(_every):
        owner._lock = threading.RLock()


os.register_at_fork(after_in_child=_in_child)
