"""SQLite's errors, and those of the file system, as Freehold's."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path
from typing import Any

from freehold.errors import (
    RowRefused,
    SchemaMissing,
    StoreDenied,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from freehold.store.statements import BULK_STEP_INDEX, LANE_INDEX, UNIQUE_INDEX, Conflict

#: In the texts of errors about one row: no valid UTF-8, a sum out of range, a text too large.
_ROW_REFUSED = ("decode to UTF-8", "integer overflow", "too big")

#: SQLite names the columns of a unique index, not the index.
_INDEX_OF = {
    "job.unique_key": UNIQUE_INDEX,
    "job.target": LANE_INDEX,
    "bulk_step.operation, bulk_step.number": BULK_STEP_INDEX,
}


class Translating:
    """Turns errors of SQLite and of the file system into the store's."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        if isinstance(error, sqlite3.IntegrityError):
            text = str(error)
            _, is_unique, columns = text.partition("UNIQUE constraint failed: ")
            if is_unique:
                raise Conflict(_INDEX_OF.get(columns, columns)) from None
            raise RowRefused(f"SQLite refused a row: {text}") from error
        if isinstance(error, sqlite3.Error):
            raise _error_of(str(error), self._path) from error
        if isinstance(error, OSError):
            raise _os_error_of(error, self._path) from error


def _os_error_of(error: OSError, path: Path | None) -> StoreError:
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return StoreReadOnly(
            f"the store {path} cannot be written: {error.strerror}; "
            "check the owner and mode of the file and its folder"
        )
    return StoreUnavailable(f"the store {path} cannot be opened: {error.strerror}")


def _error_of(text: str, path: Path | None) -> StoreError:
    where = f"the store {path or 'in memory'}"
    if "readonly" in text:
        return StoreReadOnly(
            f"{where} cannot be written: check the owner and mode of the file and its folder"
        )
    if "full" in text:
        return StoreFull(f"{where} has no space left: free some, nothing was written")
    if "no such table" in text or "no such column" in text:
        return SchemaMissing(f"{where} has no Freehold schema: run `freehold migrate`")
    if "not a database" in text:
        return StoreError(f"{path} is not an SQLite database: choose another file")
    if any(sign in text for sign in _ROW_REFUSED):
        public = text.partition(" with text ")[0]  # the row's own text may be private
        return RowRefused(f"{where} has a row that cannot be used: {public}")
    if "unable to open" in text and path is not None and _is_denied(path):
        return StoreDenied(
            f"{where} cannot be opened: permission denied; check the owner and mode of the file "
            "and its folder"
        )
    if "unable to open" in text and path is not None and _is_gone(path):
        return SchemaMissing(f"{where} does not exist: was it moved or dropped?")
    if "unable to open" in text:
        return StoreUnavailable(f"{where} cannot be opened: does its folder exist?")
    return StoreUnavailable(f"{where} failed: {text}")


def _is_denied(path: Path) -> bool:
    """`os.access` does not raise where `Path.exists` may, in a folder of another user."""
    seen = os.access(path, os.F_OK)
    closed = os.access(path.parent, os.F_OK) and not os.access(path.parent, os.X_OK)
    return closed or (seen and not os.access(path, os.R_OK | os.W_OK))


def _is_gone(path: Path) -> bool:
    return path.parent.is_dir() and not path.exists()
