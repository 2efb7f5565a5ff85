"""The admin pages: who may see and do what."""

from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.test import TestCase

from freehold import AuditFilter
from freehold.contrib.django import backend_of
from freehold.contrib.django.admin import VIA
from shop import tasks

LIST = "/admin/freehold/queuejob/"


class AdminTests(TestCase):
    def setUp(self) -> None:
        self.job = tasks.add.using(priority=3).enqueue(
            "a private argument", {"Api-Key": "a masked one"}
        )
        self.page = f"{LIST}default/{self.job.id}/"

    def sign_in(self, *permissions: str, is_staff: bool = True) -> None:
        user = User.objects.create_user("anna", is_staff=is_staff)
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        self.client.force_login(user)

    def act(self, action: str, *jobs: str, at: str = LIST) -> str:
        answer = self.client.post(at, {"action": action, "job": jobs, "reason": "why"}, follow=True)
        self.assertEqual(answer.status_code, 200)
        return answer.content.decode()

    def state(self) -> str:
        found = backend_of("default").store.read(int(self.job.id))
        return str(found[0].state)

    def test_pages_are_for_staff_with_permission(self) -> None:
        for page in (LIST, self.page):
            self.assertEqual(self.client.get(page).status_code, 302)  # to the sign-in
        self.sign_in("view_queuejob", "change_queuejob", is_staff=False)
        for page in (LIST, self.page):
            self.assertEqual(self.client.get(page).status_code, 302)
            self.assertEqual(self.client.post(page, {"action": "cancel"}).status_code, 302)

    def test_staff_without_permission_sees_nothing(self) -> None:
        self.sign_in()
        for page in (LIST, self.page):
            self.assertEqual(self.client.get(page).status_code, 403)
            self.assertEqual(self.client.post(page, {"action": "cancel"}).status_code, 403)
        self.assertNotIn("freehold/queuejob", self.client.get("/admin/").content.decode())

    def test_a_viewer_sees_jobs_without_their_arguments(self) -> None:
        self.sign_in("view_queuejob")
        self.assertIn(LIST, self.client.get("/admin/").content.decode())
        for page in (LIST, self.page):
            text = self.client.get(page).content.decode()
            self.assertIn("shop.tasks.add", text)
            self.assertNotIn("a private argument", text)
            self.assertNotIn('name="action"', text)
            for action in ("cancel", "show_private"):
                refused = self.client.post(page, {"action": action, "job": self.job.id})
                self.assertEqual(refused.status_code, 403)
        self.assertEqual(self.state(), "queued")

    def test_actions(self) -> None:
        self.sign_in("view_queuejob", "change_queuejob")
        self.assertNotIn("a private argument", self.client.get(self.page).content.decode())
        shown = self.act("show_private", self.job.id, at=self.page)
        self.assertIn("a private argument", shown)
        self.assertNotIn("a masked one", shown)
        with backend_of("default").store.operator(VIA) as operator:
            (entry,) = operator.audit(AuditFilter()).entries
        self.assertEqual((entry.by, entry.verb, entry.via), ("anna", "show_private", VIA))
        for action, state in (
            ("pause", "paused"),
            ("resume", "queued"),
            ("cancel", "canceled"),
            ("retry", "queued"),
        ):
            self.assertIn(f"{action.title()}: 1 job", self.act(action, self.job.id))
            self.assertEqual(self.state(), state)
        self.act("cancel", self.job.id, at=self.page)
        self.assertEqual(self.state(), "canceled")
        with backend_of("default").store.operator(VIA) as operator:
            entry = operator.audit(AuditFilter()).entries[0]
        self.assertEqual((entry.by, entry.via, entry.reason), ("anna", VIA, "why"))

    def test_wrong_input_changes_nothing(self) -> None:
        self.sign_in("view_queuejob", "change_queuejob")
        for action, jobs, text in (
            ("delete", (self.job.id,), "choose an action"),
            ("cancel", (), "choose the jobs"),
            ("cancel", ("x",), "Nothing was changed"),
            ("cancel", (self.job.id, "999999"), "999999"),
            ("retry", (self.job.id,), "only a finished job"),
        ):
            with self.subTest(action, jobs=jobs):
                self.assertIn(text, self.act(action, *jobs))
        self.assertEqual(self.state(), "queued")
        self.assertIn("no state", self.client.get(f"{LIST}?state=x").content.decode())
        self.assertIn("not the number", self.client.get(f"{LIST}?before=x").content.decode())
        self.assertEqual(self.client.get(f"{LIST}?backend=other").status_code, 404)
        self.assertEqual(self.client.get(f"{LIST}default/999999/").status_code, 404)

    def test_filters_and_pages(self) -> None:
        self.sign_in("view_queuejob")
        tasks.add.using(queue_name="mail").enqueue_many([(n,) for n in range(60)])
        text = self.client.get(f"{LIST}?queue=mail").content.decode()
        self.assertIn("Older jobs", text)
        self.assertNotIn(self.page, text)
        self.assertIn("No jobs.", self.client.get(f"{LIST}?state=failed").content.decode())

    def test_commands_over_all_models_work(self) -> None:
        call_command("dumpdata", "freehold", "--all", verbosity=0)
        call_command("makemigrations", "--check", "--dry-run", verbosity=0)
