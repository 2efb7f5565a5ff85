"""Templates into HTML. Every value is escaped, and a name that is missing is an error."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse

from freehold.dashboard import static_files
from freehold.dashboard.graph import BOX_HEIGHT, BOX_WIDTH, count_parts
from freehold.dashboard.navigation import SECTIONS
from freehold.dashboard.page_request import Page, PageRequest
from freehold.dashboard.pages.demo import controls_of
from freehold.dashboard.spans import kind_of
from freehold.dashboard.words import (
    bounded,
    duration,
    flow_class,
    flow_words,
    number,
    plural,
    sentence,
    stage_words,
    state_words,
    step_words,
    visible,
)
from freehold.http_auth import Role
from freehold.model.flow_graph import flow_state
from freehold.version import VERSION

THEMES = ("system", "light", "dark")
THEME_COOKIE = "freehold-theme"


@cache
def environment() -> Environment:
    found = Environment(
        loader=PackageLoader("freehold.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.filters |= {
        "duration": duration,
        "number": number,
        "visible": visible,
        "time": time_tag,
        "stage_words": stage_words,
        "state_words": state_words,
        "step_words": step_words,
        "sentence": sentence,
        "outcome_kind": kind_of,
        "flow_state": flow_state,
        "flow_words": flow_words,
        "flow_class": flow_class,
    }
    found.globals |= {"bounded": bounded, "plural": plural, "Role": Role}
    found.globals |= {"count_parts": count_parts, "box_width": BOX_WIDTH, "box_height": BOX_HEIGHT}
    return found


def time_tag(at: datetime | None, style: str = "ago") -> Markup:
    """A time in UTC. The script shows it as an age, or in the zone of the browser; the address of
    a page and its text do not change with time, so that an unchanged page is recognized."""
    if at is None:
        return Markup('<span class="none">–</span>')
    utc = at.astimezone(UTC)
    return Markup('<time datetime="{}" data-style="{}">{}</time>').format(
        utc.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        style,
        utc.strftime("%Y-%m-%d %H:%M:%S UTC"),
    )


def theme_of(request: Request) -> str:
    theme = request.cookies.get(THEME_COOKIE, "")
    return theme if theme in THEMES else "system"


def rendered(
    request: PageRequest, page: Page, *, is_part: bool = False, done: str | None = None
) -> str:
    """The whole page, or only the part that changes (`main`)."""
    values: dict[str, Any] = {
        "frame": "part.html" if is_part else "frame.html",
        "page": page,
        "request": request,
        "url": request.url,
        "command_line": request.command_line,
        "visitor": request.caller,
        "form_token": request.form_token,
        "may_operate": request.may(Role.OPERATOR),
        "may_administer": request.may(Role.ADMIN),
        "sections": [
            each
            for each in SECTIONS
            if request.may(each.role) and not (each.of_all and request.tenant)
        ],
        "static": f"{request.http.scope.get('root_path', '')}/static/{static_files.version()}",
        "home": request.http.scope.get("root_path", ""),
        "theme": theme_of(request.http),
        "version": VERSION,
        "done": done,
        "demo": controls_of(request) is not None,
        "here": address_of(request.http),
        **page.values,
    }
    return environment().get_template(page.template).render(values)


def address_of(request: Request) -> str:
    """The address of this page, to come back to."""
    query: str = request.scope.get("query_string", b"").decode("latin-1")
    return quote(request.scope["path"]) + (f"?{query}" if query else "")


def not_found_page(request: Request, status: int) -> HTMLResponse:
    root = escape(request.scope.get("root_path", ""))
    tenant = re.match(r"/t/[^/]+(?=/)", address_of(request).removeprefix(quote(root)))
    text = "There is no such page" if status == 404 else "This page does not accept that"
    template = environment().get_template("plain.html")
    return HTMLResponse(
        template.render(
            text=text,
            home=f"{root}{tenant[0] if tenant else ''}/",
            static=f"{root}/static/{static_files.version()}",
            theme=theme_of(request),
            status=status,
        ),
        status,
    )
