"""A fork while the file is open.

SQLite keeps account of its locks by process, and knows nothing of forks: a connection that a
child opens beside its parent's believes that it holds the parent's locks already. One of them
could then take the log away under the other. So connections are closed before a fork, and
opened again by whoever of the two needs one. The same goes for the locks of threads that do
not exist in the child.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Forkable(Protocol):
    def rest(self) -> bool:
        """Close everything and keep all threads out. False: somebody is busy for too long."""
        ...

    def wake(self) -> None:
        """In the parent, if it rested."""
        ...

    def begin_anew(self) -> None:
        """In the child: nothing of the parent's is held, or used any more."""
        ...


_every: weakref.WeakSet[Forkable] = weakref.WeakSet()
_adding = threading.Lock()
_resting = threading.local()


def survives_forks(what: Forkable) -> None:
    with _adding:
        _every.add(what)


def _before() -> None:
    _resting.those = []
    with _adding:
        known = tuple(_every)
    for each in known:
        if each.rest():
            _resting.those.append(each)


def _in_parent() -> None:
    for each in _resting.those:
        each.wake()


def _in_child() -> None:
    global _adding
    _adding = threading.Lock()
    for each in tuple(_every):
        each.begin_anew()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
