"""A document: split into pages, each page read by a job of its own, the text indexed and published.

    freehold migrate --app documents:app
    freehold worker --app documents:app
    python -c 'import documents; documents.submit("manual")'
    freehold flows --app documents:app

The number of pages is known when the document is split, so the node `read` gathers a job for each.
It holds no slot while they run. Kill workers with SIGKILL wherever you like and start others: what
has ended is not repeated. With FREEHOLD_URL the jobs are in PostgreSQL, otherwise in documents.db.
"""

import asyncio
import os

from freehold import Context, Freehold, Retry

app = Freehold(os.environ.get("FREEHOLD_URL") or "documents.db")
#: How long a page takes that is a picture.
SCAN_SECONDS = float(os.environ.get("SCAN_SECONDS") or 1)
PAGES = {"manual": ["Safety first", "scan:Plug it in", "Switch it on", "Read on"]}


@app.task
async def split(document: str) -> list[str]:
    print(f"split {document}", flush=True)
    return PAGES[document]


@app.task(retry=Retry(max_attempts=5, base_seconds=1))
async def read_page(number: int, page: str) -> str:
    print(f"page {number}", flush=True)
    if page.startswith("scan:"):
        await asyncio.sleep(SCAN_SECONDS)
    return page.removeprefix("scan:")


@app.task
async def read(ctx: Context, pages: list[str]) -> str:
    calls = [read_page.prepare(number, page) for number, page in enumerate(pages, 1)]
    return "\n".join(await ctx.gather("pages", calls))


@app.task
async def index(text: str) -> list[str]:
    print("index of the text", flush=True)
    return sorted({word.lower() for word in text.split()})


@app.task
async def summarize(text: str) -> str:
    print("summary of the text", flush=True)
    return text.splitlines()[0]


@app.task
async def publish(words: list[str], summary: str) -> str:
    print("publish it", flush=True)
    return f"{summary} ({len(words)} words)"


def submit(document: str) -> int:
    """Returns the id of the workflow. While it is open, another call for the document finds it."""
    with app.workflow("document", key=document) as flow:
        pages = flow.add(split, document)
        text = flow.add(read, pages.result)
        words, summary = flow.add(index, text.result), flow.add(summarize, text.result)
        flow.add(publish, words.result, summary.result)
    return flow.id
