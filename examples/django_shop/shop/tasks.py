"""What happens after an order."""

from django.db import transaction

from freehold import Retry
from freehold.contrib.django import task
from shop.models import Order


@task(retry=Retry(max_attempts=5), timeout=60)
def bill(number: int) -> str:
    """Safe to run twice: the second run finds the bill."""
    with transaction.atomic():
        order = Order.objects.select_for_update().get(pk=number)
        if not order.bill:
            order.bill = f"{order.customer} owes {order.cents / 100:.2f}"
            order.save()
    return order.bill
