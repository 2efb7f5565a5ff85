"""The backend for tests."""

from datetime import timedelta

from django.db import transaction
from django.test import TestCase, TransactionTestCase, override_settings
from django.utils import timezone

from freehold.contrib.django.compat import (
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_finished,
)
from freehold.contrib.django.testing import arun_tasks, clear_tasks, run_tasks
from shop import tasks
from shop.models import Order


@override_settings(
    TASKS={"default": {"BACKEND": "freehold.contrib.django.testing.TestBackend", "QUEUES": []}}
)
class TestBackendTests(TestCase):
    """Jobs run inside of the transaction of the test."""

    def test_a_job_sees_the_rows_of_the_test(self) -> None:
        order = Order.objects.create(name="one")
        result, other = tasks.bill.enqueue(order.pk), tasks.bill_async.enqueue(order.pk)
        self.assertEqual(run_tasks().succeeded, 3)
        order.refresh_from_db()
        self.assertEqual(order.billed, 2)
        result.refresh()
        self.assertEqual((result.return_value, result.attempts), ("one", 1))
        other.refresh()
        self.assertEqual(other.status, TaskResultStatus.SUCCESSFUL)

    def test_the_jobs_of_the_test_before_are_gone(self) -> None:
        self.assertEqual(run_tasks().jobs, ())

    def test_a_rolled_back_enqueue_does_not_run(self) -> None:
        with self.assertRaises(RuntimeError), transaction.atomic():
            lost = tasks.add.enqueue(1)
            raise RuntimeError
        with transaction.atomic():
            kept = tasks.add.enqueue(2)
        self.assertEqual([str(job.id) for job in run_tasks().jobs], [kept.id])
        with self.assertRaises(TaskResultDoesNotExist):
            lost.refresh()

    def test_retries_take_no_time(self) -> None:
        result = tasks.attempts.enqueue(3)
        report = run_tasks()
        self.assertEqual((report.succeeded, report.retried), (1, 3))
        result.refresh()
        self.assertEqual(result.return_value, [4, result.id, 3])

    def test_deferred_tasks_run_when_asked_for(self) -> None:
        tasks.add.using(run_after=timezone.now() + timedelta(days=3)).enqueue(1)
        self.assertEqual(run_tasks().succeeded, 0)
        self.assertEqual(run_tasks(scheduled=True).succeeded, 1)

    def test_errors_can_be_raised(self) -> None:
        tasks.give_up.enqueue()
        with self.assertRaises(KeyError):
            run_tasks(raise_errors=True)

    def test_queries_are_counted(self) -> None:
        order = Order.objects.create(name="one")
        tasks.bill.enqueue(order.pk)
        # Two for the savepoint, one to read, one to write.
        with self.assertNumQueries(4):
            run_tasks()

    def test_receivers_run_in_the_transaction_of_the_test(self) -> None:
        def receive(sender, task_result, **kwargs) -> None:
            Order.objects.create(name=f"{task_result.status}")

        task_finished.connect(receive)
        self.addCleanup(task_finished.disconnect, receive)
        tasks.add.enqueue(1)
        run_tasks()
        self.assertEqual(Order.objects.get().name, "SUCCESSFUL")


@override_settings(
    TASKS={"default": {"BACKEND": "freehold.contrib.django.testing.TestBackend", "QUEUES": []}}
)
class TestBackendTransactionTests(TransactionTestCase):
    def test_jobs_stay_until_they_are_cleared(self) -> None:
        with transaction.atomic():
            tasks.add.enqueue(1)
        with self.assertRaises(RuntimeError), transaction.atomic():
            tasks.add.enqueue(2)
            raise RuntimeError
        self.assertEqual(run_tasks().succeeded, 1)
        clear_tasks()
        with self.assertRaises(TaskResultDoesNotExist):
            tasks.add.get_result("1")

    async def test_coroutines(self) -> None:
        await Order.objects.acreate(name="one")
        order = await Order.objects.afirst()
        await tasks.bill_async.aenqueue(order.pk)
        report = await arun_tasks()
        self.assertEqual(report.succeeded, 2, report)
        await order.arefresh_from_db()
        self.assertEqual(order.billed, 1)
        clear_tasks()
