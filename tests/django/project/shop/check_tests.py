"""System checks of the settings."""

from django.core import checks
from django.core.management import call_command
from django.test import TransactionTestCase, override_settings

from freehold import Retry


class CheckTests(TransactionTestCase):
    def found(self, **options) -> list[str]:
        params = {"BACKEND": "freehold.contrib.django.FreeholdBackend", "OPTIONS": options}
        with override_settings(TASKS={"default": params}):
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
        self.assertEqual(self.found(DATABASE="other"), ["freehold.E002"])
        self.assertEqual(self.found(SCHEMA="no schema"), ["freehold.E003"])

    def test_a_store_of_its_own_is_outside_of_transactions(self) -> None:
        self.assertEqual(self.found(URL="somewhere.db"), ["freehold.I001"])

    def test_the_schema_is_checked_where_databases_are(self) -> None:
        call_command("check", "--database", "default", "--fail-level", "WARNING")
