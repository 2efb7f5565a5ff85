"""Run them with `python manage.py test`."""

from django.test import TestCase, override_settings

from freehold.contrib.django.testing import run_tasks
from shop.models import Order

TEST_TASKS = {"default": {"BACKEND": "freehold.contrib.django.testing.TestBackend"}}


@override_settings(TASKS=TEST_TASKS)
class OrderTests(TestCase):
    def test_an_order_is_billed(self) -> None:
        answer = self.client.post("/orders/", {"customer": "anna", "cents": "1999"})
        self.assertEqual(answer.status_code, 201)
        self.assertEqual(run_tasks().succeeded, 1)
        self.assertEqual(Order.objects.get().bill, "anna owes 19.99")

    def test_a_refused_order_leaves_no_job(self) -> None:
        answer = self.client.post("/orders/", {"customer": "", "cents": "1999"})
        self.assertEqual(answer.status_code, 400)
        self.assertEqual((run_tasks().jobs, Order.objects.count()), ((), 0))
