"""The model of the admin pages, which gives them a place in the menu and permissions.

Jobs are read by the operator of Freehold, on both stores alike: the model has no table and no rows.
"""

from __future__ import annotations

from typing import Any

from django.db import models


class NoRows(models.Manager):  # type: ignore[type-arg,unused-ignore]
    """Commands over all models, such as `dumpdata`, find nothing and query nothing."""

    def get_queryset(self) -> Any:
        return super().get_queryset().none()


class QueueJob(models.Model):
    id = models.BigAutoField(primary_key=True)

    objects = NoRows()

    class Meta:
        managed = False
        verbose_name = "job"
        base_manager_name = "objects"
        default_permissions = ("view", "change")
