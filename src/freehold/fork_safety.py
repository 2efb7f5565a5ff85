"""What happens at a fork, for every part of the program that must know.

A forked child has a copy of its parent's memory, but only the thread that forked. A lock that
another thread held would never be released there, and connections and files still belong to the
parent.

SQLite keeps track of its locks by process and knows nothing of forks: a connection that a child
opens beside its parent's believes that it holds the parent's locks already. One of them could then
delete the log that the other uses. So its connections are closed before a fork, and opened again at
their next use, in the parent and in the child.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Lockable(Protocol):
    _lock: AbstractContextManager[Any]


class ForkAware:
    """Overrides what it needs, and registers itself by `notice_forks`."""

    def before_fork(self) -> bool:
        """Close what a child must not have, and block all threads. False: nothing was done, and
        the parent needs no call afterwards."""
        return False

    def after_fork_in_parent(self) -> None:
        """Called if `before_fork` returned True."""

    def after_fork_in_child(self) -> None:
        """Nothing of the parent's may be held or used any more."""


_owners: weakref.WeakSet[Lockable] = weakref.WeakSet()
_aware: weakref.WeakSet[ForkAware] = weakref.WeakSet()
_adding = threading.Lock()
_forking = threading.local()


def lock_of(owner: Lockable) -> AbstractContextManager[Any]:
    """A lock for ``owner._lock``, which is replaced in every forked child. It is not wrapped:
    Ctrl-C between the acquisition and its bookkeeping would leave it locked for ever."""
    with _adding:
        _owners.add(owner)
    return threading.RLock()


def notice_forks(aware: ForkAware) -> None:
    """Call its hooks at every fork, for as long as it exists."""
    with _adding:
        _aware.add(aware)


def _before() -> None:
    _forking.closed = []
    with _adding:
        known = tuple(_aware)
    for each in known:
        if each.before_fork():
            _forking.closed.append(each)


def _in_parent() -> None:
    for each in _forking.closed:
        each.after_fork_in_parent()


def _in_child() -> None:
    global _adding
    _adding = threading.Lock()
    for owner in tuple(_owners):
        owner._lock = threading.RLock()
    for each in tuple(_aware):
        each.after_fork_in_child()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
