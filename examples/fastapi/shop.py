"""A shop: requests place orders, jobs bill them, and a page follows its job.

    uvicorn shop:web --workers 2
    freehold worker --app shop:queue

With FREEHOLD_URL (or DATABASE_URL) the jobs are in PostgreSQL, otherwise in shop.db.
"""

import os
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from freehold import Context, Freehold, JobNotFound, Retry
from freehold.contrib.fastapi import job_events, lifespan
from freehold.dashboard import dashboard
from freehold.http import Caller, Role, api


@dataclass
class Deps:
    """What all jobs of a worker process share."""

    prices: dict[str, int]


@asynccontextmanager
async def open_deps() -> AsyncIterator[Deps]:
    yield Deps({"tea": 3, "cake": 5})


queue = Freehold(
    os.environ.get("FREEHOLD_URL") or os.environ.get("DATABASE_URL") or "shop.db",
    lifespan=open_deps,
)
#: Tokens of the people who may see the queue.
STAFF = {"token-of-ann": Caller("ann", Role.ADMIN), "token-of-bob": Caller("bob", Role.VIEWER)}


def receipt() -> Iterator[list[str]]:
    """For requests and jobs alike: FastAPI's Depends works in both."""
    yield []


Receipt = Annotated[list[str], Depends(receipt)]


@queue.task(queue="bills", retry=Retry(max_attempts=5), timeout=30)
async def bill(ctx: Context[Deps], item: str, count: int, lines: Receipt) -> int:
    total = 0
    for number in range(count):
        total += ctx.deps.prices[item]
        lines.append(item)
        ctx.progress(number + 1, count, f"{item} {number + 1}")
    return total


def identify(request: Request) -> Caller | None:
    """The application's own login decides who sees the queue."""
    return STAFF.get(request.headers.get("x-token", ""))


web = FastAPI(lifespan=lifespan(queue))
web.mount("/queue", api(queue, identify=identify))
web.mount("/dashboard", dashboard(queue, identify=identify))


@web.post("/orders", status_code=202)
async def place(item: str, count: int, lines: Receipt) -> dict[str, int | str]:
    key = secrets.token_urlsafe(16)
    job = await bill.using(meta={"key": key}).aenqueue(item, count)
    return {"order": job.id, "key": key, "web_process": os.getpid()}


@web.get("/orders/{order}")
async def show(order: int, wait: float = 0) -> dict[str, str | int]:
    try:
        job = await queue.ajob(order)
        return {"total": await job.aresult(wait)}
    except JobNotFound as error:
        raise HTTPException(404, "there is no such order") from error
    except TimeoutError:
        return {"state": (await job.aread()).state}


@web.get("/orders/{order}/events")
async def follow(order: int, key: str = "") -> Response:
    """Only for the customer, who got the key: numbers of orders can be guessed."""
    try:
        own = (await (await queue.ajob(order)).aread()).meta.get("key")
        if isinstance(own, str) and secrets.compare_digest(own.encode(), key.encode()):
            return await job_events(queue, order)
    except JobNotFound:
        pass
    raise HTTPException(404, "there is no such order")


@web.get("/orders/{order}/page", response_class=HTMLResponse)
def page(order: int) -> str:
    return PAGE.replace("ORDER", str(order))


PAGE = """<!doctype html><title>Order ORDER</title>
<h1>Order ORDER</h1><progress max="1" value="0"></progress> <span>waits</span>
<script>
const events = new EventSource("/orders/ORDER/events" + location.search);
const show = (job) => {
  const [bar, text] = [document.querySelector("progress"), document.querySelector("span")];
  if (job.progress) bar.value = job.progress.done / (job.progress.total || 1);
  text.textContent = job.report ? `${job.state}: ${job.report.result}` : job.state;
};
events.addEventListener("job", (event) => show(JSON.parse(event.data)));
events.addEventListener("end", (event) => { show(JSON.parse(event.data)); events.close(); });
</script>
"""
