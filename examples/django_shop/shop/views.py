"""Orders over HTTP, as JSON."""

from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.shortcuts import get_object_or_404
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from shop.models import Order
from shop.tasks import bill


@csrf_exempt  # for clients that are not browsers
@require_POST
def orders(request: HttpRequest) -> JsonResponse:
    customer, cents = request.POST.get("customer", ""), request.POST.get("cents", "")
    try:
        with transaction.atomic():
            order = Order.objects.create(customer=customer, cents=int(cents))
            # The bills of one customer are written one after another.
            task = bill.using(target=f"customer:{customer}").enqueue(order.pk)
            order.task = task.id
            order.save()
            if not customer:
                raise ValueError("an order needs a customer")
    except ValueError as error:  # neither the order nor its job exists
        return JsonResponse({"error": str(error)}, status=400)
    return JsonResponse({"order": order.pk, "task": task.id}, status=201)


@require_GET
def order(request: HttpRequest, number: int) -> JsonResponse:
    found = get_object_or_404(Order, pk=number)
    result = bill.get_result(found.task)
    return JsonResponse({"bill": found.bill, "status": result.status, "attempts": result.attempts})
