"""System checks of the settings."""

from django.core import checks
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import TransactionTestCase, override_settings

from freehold import Retry, SchemaMissing
from freehold.contrib.django import compat, task
from shop import tasks

_IMMEDIATE = f"{compat.BaseTaskBackend.__module__.removesuffix('.base')}.immediate.ImmediateBackend"


def _tasks(options) -> dict:
    backend = "freehold.contrib.django.FreeholdBackend"
    return {"default": {"BACKEND": backend, "OPTIONS": options}}


class CheckTests(TransactionTestCase):
    def found(self, **options) -> list[str]:
        with override_settings(TASKS=_tasks(options)):
            return [each.id for each in checks.run_checks(tags=None) if "freehold" in each.id]

    def test_good_settings_have_no_message(self) -> None:
        self.assertEqual(self.found(), [])
        self.assertEqual(self.found(DATABASE="default", RETRY=Retry(max_attempts=2), TIMEOUT=3), [])

    def test_bad_settings_are_named(self) -> None:
        self.assertEqual(self.found(DATABSE="default"), ["freehold.E001"])
        self.assertEqual(self.found(TIMEOUT="soon"), ["freehold.E001"])
        self.assertEqual(
            self.found(URL="postgresql://host/x", DATABASE="default"), ["freehold.E001"]
        )
        self.assertEqual(self.found(TIMEOUT=-5), ["freehold.E001"])
        self.assertEqual(self.found(AUTODISCOVER=[5]), ["freehold.E001"])
        self.assertEqual(self.found(DATABASE="other"), ["freehold.E002"])
        self.assertEqual(self.found(SCHEMA="no schema"), ["freehold.E003"])
        self.assertEqual(self.found(URL="mysql://host/x"), ["freehold.E003"])

    def test_a_worker_does_not_start_with_bad_settings(self) -> None:
        for options in ({"DATABSE": "default"}, {"DATABASE": "other"}):
            with (
                override_settings(TASKS=_tasks(options)),
                self.assertRaisesRegex(CommandError, "OPTIONS"),
            ):
                call_command("freehold", "worker", "--until-idle")
        with (
            override_settings(TASKS={"default": {"BACKEND": _IMMEDIATE}}),
            self.assertRaisesRegex(CommandError, 'set "BACKEND"'),
        ):
            call_command("freehold", "jobs")

    def test_a_missing_schema_is_named_with_the_command_of_django(self) -> None:
        if connection.vendor != "postgresql":
            return
        with (
            override_settings(TASKS=_tasks({"SCHEMA": "other"})),
            self.assertRaisesRegex(SchemaMissing, r"run `manage\.py migrate`"),
        ):
            tasks.add.enqueue(1, 2)

    def test_a_command_that_is_called_does_not_end_the_program(self) -> None:
        call_command("freehold", "jobs")
        with self.assertRaisesRegex(CommandError, "No such command"):
            call_command("freehold", "wrok")
        with self.assertRaisesRegex(CommandError, "999999"):
            call_command("freehold", "job", "cancel", "999999")

    def test_unknown_options_of_a_task_are_named(self) -> None:
        with self.assertRaisesRegex(TypeError, "no option retries; .* retry, limit"):
            task(retries=3)

    def test_a_store_of_its_own_is_outside_of_transactions(self) -> None:
        self.assertEqual(self.found(URL="somewhere.db"), ["freehold.I001"])

    def test_the_schema_is_checked_where_databases_are(self) -> None:
        call_command("check", "--database", "default", "--fail-level", "WARNING")
