"""Tasks of every kind."""

import os
import time
from pathlib import Path

from django.db import connection, transaction

from freehold.contrib.django import task
from shop.models import Order


@task
def add(first: int, second: int = 0) -> int:
    return first + second


@task
def bill(order: int) -> str:
    """Counts in the database how often it ran."""
    with transaction.atomic():
        found = Order.objects.select_for_update().get(pk=order)
        found.billed += 1
        found.save()
    return found.name


@task
async def bill_async(order: int) -> int:
    found = await Order.objects.aget(pk=order)
    found.billed += 1
    await found.asave()
    follower = await add.aenqueue(found.billed, 10)
    return int(follower.id)


@task(takes_context=True)
def attempts(context, fails: int) -> list:
    """Fails so many times."""
    if context.attempt <= fails:
        raise ValueError(f"attempt {context.attempt}")
    return [context.attempt, context.task_result.id, len(context.task_result.errors)]


@task
def give_up() -> None:
    raise KeyError("no such thing")


@task
def backend_process() -> int:
    """The process of the server that runs the statements of this thread."""
    with connection.cursor() as cursor:
        cursor.execute("select pg_backend_pid()")
        return cursor.fetchone()[0]


@task
def enqueue_more(name: str, fail: bool) -> None:
    """In one transaction with a row."""
    with transaction.atomic():
        Order.objects.create(name=name)
        add.enqueue(1)
        if fail:
            raise RuntimeError("rolled back")


@task(isolation="process")
def in_child() -> int:
    Order.objects.count()
    return os.getpid()


@task
def hold(started: str, release: str) -> str:
    """Writes a line for each start, and waits for the second file at the first start."""
    with Path(started).open("a") as file:
        file.write(f"{os.getpid()}\n")
    while len(Path(started).read_text().splitlines()) == 1 and not Path(release).exists():
        time.sleep(0.01)
    return "done"
