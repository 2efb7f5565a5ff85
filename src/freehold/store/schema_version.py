"""Checks of the schema version, for both stores."""

from __future__ import annotations

from collections.abc import Sequence

from freehold.errors import SchemaMissing, SchemaTooNew
from freehold.store.database import Database, Migration


def check_not_newer(where: str, applied: int, known: Sequence[Migration]) -> None:
    newest = known[-1].version
    if applied > newest:
        raise SchemaTooNew(
            f"{where} has schema version {applied}, this program knows up to {newest}: "
            "upgrade freehold here, or use the version that migrated the database"
        )


def check_migrated(database: Database) -> None:
    """Raise SchemaMissing with what to do, before anything else fails less clearly."""
    if pending := database.pending():
        raise SchemaMissing(
            f"{database.shown} needs {len(pending)} migration(s): run `freehold migrate`"
        )
