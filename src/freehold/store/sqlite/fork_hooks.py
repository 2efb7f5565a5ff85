"""A fork while the file is open.

SQLite keeps track of its locks by process and knows nothing of forks: a connection that a child
opens beside its parent's believes that it holds the parent's locks already. One of them could then
delete the log that the other uses. So connections are closed before a fork, and opened again at
their next use, in the parent and in the child. Locks of threads that do not exist in the child are
replaced there.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Forkable(Protocol):
    def before_fork(self) -> bool:
        """Close everything and block all threads. False: a thread was busy for too long."""
        ...

    def after_fork_in_parent(self) -> None:
        """Called if `before_fork` returned True."""
        ...

    def after_fork_in_child(self) -> None:
        """Nothing of the parent's is held or used any more."""
        ...


_registered: weakref.WeakSet[Forkable] = weakref.WeakSet()
_registering = threading.Lock()
_forking = threading.local()


def register_fork_hooks(forkable: Forkable) -> None:
    with _registering:
        _registered.add(forkable)


def _before() -> None:
    _forking.closed = []
    with _registering:
        known = tuple(_registered)
    for each in known:
        if each.before_fork():
            _forking.closed.append(each)


def _in_parent() -> None:
    for each in _forking.closed:
        each.after_fork_in_parent()


def _in_child() -> None:
    global _registering
    _registering = threading.Lock()
    for each in tuple(_registered):
        each.after_fork_in_child()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
