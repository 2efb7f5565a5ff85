"""Orders."""

from django.db import models


class Order(models.Model):
    customer = models.CharField(max_length=100)
    cents = models.PositiveIntegerField()
    #: The task that bills the order.
    task = models.CharField(max_length=64, default="")
    bill = models.CharField(max_length=200, default="")
