"""The application "freehold" of a Django project."""

from __future__ import annotations

from django.apps import AppConfig
from django.core import checks
from django.db.models.signals import post_migrate


class FreeholdConfig(AppConfig):
    name = "freehold.contrib.django"
    label = "freehold"
    verbose_name = "Freehold"

    def ready(self) -> None:
        from freehold.contrib.django.checks import check_schema_exists
        from freehold.contrib.django.schema import migrate_stores

        checks.register(check_schema_exists, checks.Tags.database)
        post_migrate.connect(migrate_stores, sender=self)
