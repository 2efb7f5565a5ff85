"""An app for `--app tests.cli.shop:app`, and things beside it that are none."""

from __future__ import annotations

from freehold import Freehold, Retry

app = Freehold("sqlite:///never-opened.db")
not_an_app = 42


@app.task(name="shop.send", queue="mail", retry=Retry(max_attempts=3), timeout=30, tags=("shop",))
async def send(to: str, subject: str = "hi") -> None: ...


@app.task(name="shop.render")
def render(page: int, *pages: int) -> None: ...
