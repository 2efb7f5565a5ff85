"""Enqueueing, transactions and results, on the database of the project."""

import os
from contextlib import closing
from datetime import timedelta
from tempfile import TemporaryDirectory

from django.db import connection, transaction
from django.test import TransactionTestCase, override_settings
from django.utils import timezone

from freehold import BadInput, Freehold, Limit, Retry
from freehold.contrib.django import backend_of, task
from freehold.contrib.django.compat import (
    BUILT_IN,
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task_enqueued,
    task_finished,
    task_started,
)
from freehold.store.types import JobFilter
from shop import tasks
from shop.models import Order

DUMMY = f"{'django.tasks' if BUILT_IN else 'django_tasks'}.backends.dummy.DummyBackend"
IS_POSTGRES = os.environ["SHOP_DATABASE"].startswith("postgresql")


def stored() -> list:
    """All jobs, as another connection sees them."""
    page = backend_of("default").app.operator.jobs(JobFilter(limit=1000))
    return list(page.jobs)


class Stored(TransactionTestCase):
    """Each test begins with an empty store, and ends without connections to it."""

    def setUp(self) -> None:
        self.app = backend_of("default").app
        while jobs := stored():
            self.app.operator.delete(*(job.id for job in jobs), by="test")
        self.addCleanup(self.app.close)

    def work(self) -> None:
        backend_of("default").store.define_all()
        self.assertEqual(self.app.run_worker(until_idle=True), 0)


class TransactionTests(Stored):
    def test_a_job_exists_if_its_transaction_commits(self) -> None:
        with transaction.atomic():
            Order.objects.create(name="first")
            result = tasks.add.enqueue(1, second=2)
            self.assertEqual(stored(), [])  # for others
            self.assertEqual(tasks.add.get_result(result.id), result)  # for the transaction itself
        self.assertEqual([str(job.id) for job in stored()], [result.id])
        self.assertEqual(tasks.add.get_result(result.id), result)

    def test_a_job_does_not_exist_if_its_transaction_is_rolled_back(self) -> None:
        with self.assertRaises(RuntimeError), transaction.atomic():
            result = tasks.add.enqueue(1)
            raise RuntimeError
        self.assertEqual(stored(), [])
        with self.assertRaises(TaskResultDoesNotExist):
            tasks.add.get_result(result.id)

    def test_a_job_ends_with_the_inner_block_that_is_rolled_back(self) -> None:
        with transaction.atomic():
            kept = tasks.add.enqueue(1)
            with self.assertRaises(RuntimeError), transaction.atomic():
                tasks.add.enqueue(2)
                raise RuntimeError
        self.assertEqual([str(job.id) for job in stored()], [kept.id])

    def test_a_refused_call_leaves_the_transaction_usable(self) -> None:
        with transaction.atomic():
            Order.objects.create(name="kept")
            with self.assertRaises(TypeError):
                tasks.add.enqueue(object())
            with self.assertRaises(ValueError):
                tasks.add.using(unique_key="").enqueue(1)
        self.assertEqual(Order.objects.count(), 1)
        self.assertEqual(stored(), [])

    def test_without_a_transaction_the_job_is_stored_at_once(self) -> None:
        result = tasks.add.enqueue(1)
        self.assertEqual([str(job.id) for job in stored()], [result.id])
        self.assertFalse(connection.in_atomic_block)

    def test_many_jobs_are_stored_together_or_not_at_all(self) -> None:
        results = tasks.add.enqueue_many([(number,) for number in range(2500)])
        self.assertEqual([each.args for each in results], [[n] for n in range(2500)])
        self.assertEqual(len({each.id for each in results}), 2500)
        with self.assertRaises(TypeError):
            tasks.add.enqueue_many([(1,), (object(),)])
        with self.assertRaises(TypeError):
            tasks.add.enqueue_many([1, 2])
        with self.assertRaises(RuntimeError), transaction.atomic():
            tasks.add.enqueue_many([{"first": 1}, {"first": 2}])
            raise RuntimeError
        self.assertEqual(backend_of("default").app.operator.counts().ready, 2500)

    def test_a_unique_job_is_found_inside_of_a_transaction(self) -> None:
        first = tasks.add.using(unique_key="one").enqueue(1)
        with transaction.atomic():
            again = tasks.add.using(unique_key="one").enqueue(2)
            Order.objects.create(name="kept")
        self.assertEqual((again.id, again.args), (first.id, [1]))
        self.assertEqual(Order.objects.count(), 1)

    def test_a_key_of_a_job_that_is_no_task_of_django_gives_a_result(self) -> None:
        foreign = self.app.task(name="foreign")(print)
        first = foreign.using(unique_key="shared").enqueue()
        result = tasks.add.using(unique_key="shared").enqueue(2)
        self.assertEqual((result.id, result.args), (str(first.id), [2]))

    async def test_a_coroutine_enqueues_and_reads(self) -> None:
        result = await tasks.add.aenqueue(3)
        self.assertEqual(await tasks.add.aget_result(result.id), result)
        with self.assertRaises(TaskResultDoesNotExist):
            await tasks.add.aget_result("not a number")

    def test_a_connection_to_another_file_is_refused(self) -> None:
        if IS_POSTGRES:
            return
        with TemporaryDirectory() as folder, closing(Freehold(f"{folder}/other.db")) as other:
            task_of_other = other.task(name="other")(lambda: None)
            with self.assertRaisesMessage(BadInput, "to the same file"):
                task_of_other.using(connection=connection).enqueue()

    def test_the_web_process_opens_no_connection_of_its_own(self) -> None:
        if not IS_POSTGRES:
            return
        self.app.close()
        with connection.cursor() as cursor:
            count = "select count(*) from pg_stat_activity where datname = current_database()"
            cursor.execute(count)
            before = cursor.fetchone()
            tasks.add.get_result(tasks.add.enqueue(1).id)
            cursor.execute(count)
            self.assertEqual(cursor.fetchone(), before)


class ResultTests(Stored):
    def test_a_result_follows_its_job(self) -> None:
        result = tasks.add.enqueue(20, second=22)
        self.assertEqual(result.status, TaskResultStatus.READY)
        self.work()
        result.refresh()
        self.assertEqual((result.status, result.return_value), (TaskResultStatus.SUCCESSFUL, 42))
        self.assertEqual(result.attempts, 1)
        self.assertLessEqual(result.enqueued_at, result.started_at)
        self.assertLessEqual(result.started_at, result.finished_at)

    def test_retries_are_attempts_with_their_errors(self) -> None:
        params = {
            "BACKEND": "freehold.contrib.django.FreeholdBackend",
            "OPTIONS": {"RETRY": Retry(max_attempts=3, base_seconds=0)},
        }
        with override_settings(TASKS={"default": params}):
            self.app = backend_of("default").app
            self.addCleanup(self.app.close)
            result = tasks.attempts.enqueue(2)
            self.work()
            result.refresh()
        self.assertEqual(result.return_value, [3, result.id, 2])
        self.assertEqual(len(result.worker_ids), 3)
        self.assertEqual([e.exception_class for e in result.errors], [ValueError] * 2)
        self.assertTrue(result.errors[1].traceback.endswith("ValueError: attempt 2\n"))

    def test_a_canceled_job_is_failed(self) -> None:
        result = tasks.add.enqueue(1)
        self.app.operator.cancel(int(result.id), by="anna", reason="a mistake")
        result.refresh()
        self.assertEqual(result.status, TaskResultStatus.FAILED)
        self.assertIn("a mistake", result.errors[0].traceback)
        self.assertTrue(issubclass(result.errors[0].exception_class, Exception))

    def test_a_deferred_task_keeps_its_time(self) -> None:
        later = timezone.now() + timedelta(hours=1)
        result = tasks.add.using(run_after=later, priority=7, queue_name="slow").enqueue(1)
        found = tasks.add.get_result(result.id)
        self.assertEqual(found, result)
        self.assertEqual((found.task.run_after, found.task.priority), (later, 7))
        self.work()
        found.refresh()
        self.assertEqual(found.status, TaskResultStatus.READY)

    def test_ids_that_are_no_ids_of_jobs(self) -> None:
        for each in ("0", "-1", "1e3", "²", "9" * 30, "", "a6b0c3d2-0000-4000-8000-000000000000"):
            with self.subTest(each), self.assertRaises(TaskResultDoesNotExist):
                tasks.add.get_result(each)

    def test_a_job_of_a_task_that_is_not_of_django(self) -> None:
        handle = self.app.task(name="shop.native")(lambda: None).enqueue()
        with self.assertRaises(TaskResultDoesNotExist):
            backend_of("default").get_result(str(handle.id))

    def test_a_coroutine_uses_the_database_and_enqueues(self) -> None:
        order = Order.objects.create(name="one")
        result = tasks.bill_async.enqueue(order.pk)
        self.work()
        result.refresh()
        order.refresh_from_db()
        self.assertEqual((result.status, order.billed), (TaskResultStatus.SUCCESSFUL, 1))
        self.assertEqual(tasks.add.get_result(str(result.return_value)).return_value, 11)

    def test_a_handler_rolls_its_jobs_back_with_its_rows(self) -> None:
        once = tasks.enqueue_more.using(max_attempts=1)
        kept, lost = once.enqueue("kept", fail=False), once.enqueue("lost", fail=True)
        self.work()
        self.assertEqual([each.name for each in Order.objects.all()], ["kept"])
        self.assertEqual(len([job for job in stored() if job.task == "shop.tasks.add"]), 1)
        kept.refresh()
        lost.refresh()
        self.assertEqual((kept.status, lost.status), ("SUCCESSFUL", "FAILED"))


class SignalTests(Stored):
    def setUp(self) -> None:
        super().setUp()
        self.seen: list = []
        for signal, name in (
            (task_enqueued, "enqueued"),
            (task_started, "started"),
            (task_finished, "finished"),
        ):
            receiver = self.receiver(name)
            signal.connect(receiver, weak=False)
            self.addCleanup(signal.disconnect, receiver)

    def receiver(self, name: str):
        def receive(sender, task_result, **kwargs) -> None:
            self.seen.append((name, str(task_result.status), sender.__name__))
            if name == "started":
                raise RuntimeError("a receiver that fails")

        return receive

    def test_a_task_is_started_once_for_each_attempt_and_finished_once(self) -> None:
        with self.assertLogs("django.dispatch", level="ERROR"):
            tasks.give_up.using(max_attempts=1).enqueue()
            with self.assertLogs("django.tasks" if BUILT_IN else "django_tasks") as logs:
                self.work()
        self.assertEqual(
            self.seen,
            [
                ("enqueued", "READY", "FreeholdBackend"),
                ("started", "RUNNING", "FreeholdBackend"),
                ("finished", "FAILED", "FreeholdBackend"),
            ],
        )
        self.assertIn("no such thing", "".join(logs.output))


class OptionTests(Stored):
    def test_options_of_a_task_reach_its_job(self) -> None:
        tasks.add.using(
            target="customer:7",
            limit_key="mail",
            tags=("a",),
            timeout=60,
            start_by=timedelta(hours=1),
            max_attempts=2,
            meta={"x": 1},
        ).enqueue(1)
        (job,) = stored()
        self.assertEqual(
            (job.target, job.limit_key, job.tags, job.timeout_seconds, job.max_attempts, job.meta),
            ("customer:7", "mail", ("a",), 60.0, 2, {"x": 1}),
        )

    def test_options_of_the_decorator(self) -> None:
        made = task(retry=Retry(max_attempts=9), limit=Limit(2), timeout=5)(tasks.add.func)
        self.assertEqual((made.retry.max_attempts, made.using(priority=2).timeout), (9, 5))
        self.assertEqual(hash(made), hash(made.using()))

    @override_settings(TASKS={"default": {"BACKEND": DUMMY}})
    def test_another_backend_gets_the_task_without_these_options(self) -> None:
        self.assertEqual(task(timeout=5)(tasks.add.func).enqueue(1).args, [1])

    def test_an_unknown_option_is_refused_with_the_known_ones(self) -> None:
        with self.assertRaisesMessage(TypeError, "unique_key"):
            tasks.add.using(uniqe_key="x")

    def test_a_queue_with_an_impossible_name_is_refused(self) -> None:
        with self.assertRaisesMessage(InvalidTask, "two words"):
            tasks.add.using(queue_name="two words")

    @override_settings(USE_TZ=False)
    def test_naive_times_of_a_project_without_time_zones(self) -> None:
        later = timezone.now() + timedelta(hours=1)
        result = tasks.add.using(run_after=later).enqueue(1)
        self.assertIsNone(result.enqueued_at.tzinfo)
        self.assertEqual(tasks.add.get_result(result.id), result)
