"""The dashboard as pages of the project, for its staff."""

import re
import time
from typing import Any
from urllib.parse import urlencode

from asgiref.sync import async_to_sync
from django.contrib.auth.models import Permission, User
from django.db import connections
from django.test import TransactionTestCase, override_settings

from freehold import AuditFilter
from freehold.contrib.django import backend_of
from freehold.contrib.django.admin import VIA
from shop import tasks

PAGES = "/queue/"
LIMIT_SECONDS = 60.0


class DashboardTests(TransactionTestCase):
    """The dashboard has connections of its own, which see what is committed."""

    def setUp(self) -> None:
        self.job = tasks.add.enqueue("a private argument", 2)
        self.page = f"{PAGES}jobs/{self.job.id}"

    def tearDown(self) -> None:
        with backend_of("default").store.operator(VIA, writes=True) as operator:
            operator.cancel(int(self.job.id), by="test")
            operator.delete(int(self.job.id), by="test")

    def sign_in(self, *permissions: str, **fields: bool) -> None:
        user = User.objects.create_user("anna", **{"is_staff": True, **fields})
        user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
        self.client.force_login(user)

    def text(self, at: str) -> str:
        answer = self.client.get(at)
        self.assertEqual(answer.status_code, 200, at)
        return answer.content.decode()

    def test_visitors_are_sent_to_the_sign_in_of_the_admin(self) -> None:
        answer = self.client.get(f"{self.page}?x=1")
        self.assertRedirects(
            answer,
            f"/admin/login/?next={self.page}%3Fx%3D1",
            fetch_redirect_response=False,
        )
        part = self.client.get(self.page, headers={"HX-Request": "true"})
        self.assertEqual((part.status_code, part["HX-Refresh"]), (401, "true"))
        self.sign_in("view_queuejob", "change_queuejob", is_staff=False)
        self.assertEqual(self.client.get(self.page).status_code, 302)

    def test_staff_without_permission_is_refused(self) -> None:
        self.sign_in()
        self.assertEqual(self.client.get(PAGES).status_code, 403)
        self.assertEqual(self.client.post(f"{self.page}/cancel").status_code, 403)

    def test_a_viewer_sees_pages_and_changes_nothing(self) -> None:
        self.sign_in("view_queuejob")
        overview = self.text(PAGES)
        style = re.search(r'href="(/queue/static/[^"]+\.css)"', overview)
        self.assertIsNotNone(style)
        self.assertIn("{", self.text(style[1]))
        self.assertIn("shop.tasks.add", self.text(f"{PAGES}jobs"))
        page = self.text(self.page)
        self.assertIn("anna", page)
        self.assertNotIn("a private argument", page)
        self.assertEqual(self.client.get(f"{PAGES}nothing").status_code, 404)
        self.assertEqual(self.client.get(f"{PAGES}audit").status_code, 403)

    def test_an_operator_changes_jobs_under_its_own_name(self) -> None:
        self.sign_in("change_queuejob")
        shown = self.text(f"{PAGES}actions?verb=pause&ids={self.job.id}")
        token = re.search(r'name="form_token" value="([^"]+)"', shown)
        self.assertEqual(self.act("wrong").status_code, 403)
        done = self.act(token[1])
        self.assertEqual((done.status_code, done["Location"]), (303, self.page))
        self.assertIn("1 job paused", self.text(self.page))
        self.assertEqual(tasks.add.get_result(self.job.id).status, "READY")
        with backend_of("default").store.operator(VIA) as operator:
            entry = operator.audit(AuditFilter()).entries[0]
        self.assertEqual(
            (entry.by, entry.verb, entry.via, entry.reason), ("anna", "pause", "dashboard", "why")
        )

    def act(self, token: str) -> Any:
        form = {"ids": self.job.id, "verb": "pause", "reason": "why", "form_token": token}
        kind = "application/x-www-form-urlencoded"
        return self.client.post(f"{PAGES}actions", urlencode(form), content_type=kind)

    def test_forms_are_accepted_behind_a_proxy_with_another_host(self) -> None:
        self.sign_in("change_queuejob")
        token = re.search(r'name="form_token" value="([^"]+)"', self.text(PAGES))
        self.client.defaults |= {
            "HTTP_X_FORWARDED_HOST": "shop.example.org",
            "HTTP_ORIGIN": "https://shop.example.org",
        }
        with override_settings(ALLOWED_HOSTS=["shop.example.org", "testserver"]):
            self.assertEqual(self.act(token[1]).status_code, 403)
            with override_settings(USE_X_FORWARDED_HOST=True):
                self.assertEqual(self.act(token[1]).status_code, 303)
        with override_settings(USE_X_FORWARDED_HOST=True):
            self.assertEqual(self.client.get(PAGES).status_code, 400)

    def test_a_superuser_is_an_admin(self) -> None:
        self.sign_in(is_superuser=True)
        self.text(f"{PAGES}system")
        self.text(f"{PAGES}audit")

    def test_pages_work_in_a_project_with_atomic_requests(self) -> None:
        self.sign_in("view_queuejob")
        database = connections.settings["default"]
        database["ATOMIC_REQUESTS"] = True
        self.addCleanup(database.update, ATOMIC_REQUESTS=False)
        self.text(PAGES)

    def test_changes_are_streamed_under_asgi_and_not_under_wsgi(self) -> None:
        self.sign_in("view_queuejob")
        self.assertEqual(self.client.get(f"{PAGES}live?topics=jobs").status_code, 204)
        self.async_client.force_login(User.objects.get())

        async def first_chunk() -> bytes:
            answer = await self.async_client.get(f"{PAGES}live?topics=jobs")
            self.assertEqual(answer["Content-Type"], "text/event-stream; charset=utf-8")
            chunks = aiter(answer)
            first: bytes = await anext(chunks)
            await chunks.aclose()
            return first

        self.assertIn(b"event: opened", async_to_sync(first_chunk)())

    def test_no_connection_stays_open(self) -> None:
        """Else a test database could not be dropped."""
        connection = connections["default"]
        if connection.vendor != "postgresql":
            return
        self.sign_in("view_queuejob")
        self.text(PAGES)
        # Only Django's own is left. The server's process of a closed one ends a moment later.
        deadline = time.monotonic() + LIMIT_SECONDS
        while connection_count() > 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(connection_count(), 1)


def connection_count() -> int:
    with connections["default"].cursor() as cursor:
        cursor.execute("select count(*) from pg_stat_activity where datname = current_database()")
        (count,) = cursor.fetchone()
    return int(count)
