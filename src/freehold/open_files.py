"""The limit of open files of this process: raised at the start."""

from __future__ import annotations

import contextlib
import errno
import resource

#: Some programs close every possible file when they start. With millions of them that takes
#: seconds, and child processes inherit the limit.
MOST_FILES = 65_536
_OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE})


def raise_limit() -> None:
    """Raise the soft limit, usually 1024, as far as the system administrator allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def file_limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft


def is_out_of_files(error: object) -> bool:
    return isinstance(error, OSError) and error.errno in _OUT_OF_FILES
