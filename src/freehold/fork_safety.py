"""Locks that are free in a forked child.

A thread of the parent may hold a lock during the fork. The child does not have that thread, so the
lock would never be released there.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Lockable(Protocol):
    _lock: AbstractContextManager[Any]


_owners: weakref.WeakSet[Lockable] = weakref.WeakSet()
_adding = threading.Lock()


def lock_of(owner: Lockable) -> AbstractContextManager[Any]:
    """A lock for ``owner._lock``, which is replaced in every forked child. It is not wrapped:
    Ctrl-C between the acquisition and its bookkeeping would leave it locked for ever."""
    with _adding:
        _owners.add(owner)
    return threading.RLock()


def _in_child() -> None:
    global _adding
    _adding = threading.Lock()
    for owner in tuple(_owners):
        owner._lock = threading.RLock()


os.register_at_fork(after_in_child=_in_child)
