"""An order: it is charged, waits for its parcel for days, and survives every crash in between.

    freehold migrate --app orders:app
    freehold worker --app orders:app
    freehold enqueue orders.order number=7 cents=4200 --app orders:app
    freehold signal send shipped:7 '{"code": "X1"}' --app orders:app

Kill the worker with SIGKILL wherever you like and start another one: the order goes on behind its
last stored step. With FREEHOLD_URL the jobs are in PostgreSQL, otherwise in orders.db.
"""

import asyncio
import os
from dataclasses import dataclass
from datetime import timedelta

from freehold import Context, Freehold, Retry

app = Freehold(os.environ.get("FREEHOLD_URL") or "orders.db")
#: How long the warehouse takes.
PACK_SECONDS = float(os.environ.get("PACK_SECONDS") or 1)


@dataclass
class Payment:
    reference: str
    cents: int


@dataclass
class Parcel:
    code: str


async def charge(number: int, cents: int) -> Payment:
    """The payment provider. The number of the order is the key by which a real one refuses a second
    charge: a worker can die after the charge and before its step is stored."""
    print(f"charge order {number}", flush=True)
    return Payment(f"payment of order {number}", cents)


async def pack(number: int) -> int:
    """The warehouse. Packing twice is harmless. Returns the weight in grams."""
    print(f"pack order {number}", flush=True)
    await asyncio.sleep(PACK_SECONDS)
    return 350


async def refund(payment: Payment) -> None:
    print(f"refund {payment.reference}", flush=True)


@app.task
async def send_mail(number: int, text: str) -> None:
    print(f"mail for order {number}: {text}", flush=True)


@app.task(retry=Retry(max_attempts=10, base_seconds=1))
async def order(number: int, cents: int, *, ctx: Context) -> str:
    payment = await ctx.step("charge", charge, number, cents)
    # The job of the mail and the step are stored together: there is one, whatever happens.
    async with ctx.transaction(step="receipt") as connection:
        if connection:
            await send_mail.using(connection=connection).aenqueue(number, f"paid {payment.cents}")
    grams = await ctx.step("pack", pack, number)
    try:
        # The job holds no worker while it waits; the carrier's web hook sends the signal.
        parcel = await ctx.wait_for_signal(f"shipped:{number}", Parcel, timeout=timedelta(days=14))
    except TimeoutError:
        await ctx.step("refund", refund, payment)
        return "refunded"
    return f"{parcel.code}, {grams} g"
