"""Pages of a tenant under /t/NAME/: errors and remedies stay in that tenant."""

from __future__ import annotations

import re

import pytest

from freehold.model.limit import ALL_QUEUES
from tests.dashboard.browser_client import BrowserClient, text_of

pytestmark = pytest.mark.requirement("N14")


@pytest.fixture
def ours(sqlite_board: BrowserClient) -> BrowserClient:
    sqlite_board.app.tenants.create("ours")
    return sqlite_board


@pytest.mark.parametrize("path", ["/jobs/999", "/jobs?before=x", "/no/such/page"])
def test_an_error_under_a_tenant_links_to_that_tenant(ours: BrowserClient, path: str) -> None:
    response = ours.visitor().get(f"/t/ours{path}")
    assert response.status_code in (404, 422)
    links = set(re.findall(r'href="(/ui/[^"]*)"', response.text))
    assert links
    assert all(each.startswith(("/ui/t/ours/", "/ui/static/")) for each in links), links


def test_an_error_of_a_tenant_that_is_none_links_to_all(ours: BrowserClient) -> None:
    response = ours.visitor().get("/t/nobody/jobs")
    assert response.status_code == 404
    assert "/t/nobody/jobs" in response.text  # try again
    assert 'href="/ui/queues"' in response.text


def test_remedies_name_the_tenant(ours: BrowserClient) -> None:
    app = ours.app.tenant("ours")
    app.operator.pause_queue("mail", by="ann")
    app.operator.pause_lane("a b", "ann")
    greet = ours.app.tasks.get("greet").using(queue="mail", target="a b", tenant="ours")
    job = greet.enqueue("x")
    visitor = ours.visitor()
    for path in (f"/t/ours/jobs/{job.id}", "/t/ours/jobs"):
        text = text_of(visitor.page(path))
        assert "freehold queues resume mail --tenant ours" in text
        assert "freehold lanes resume 'a b' --tenant ours" in text
    findings = app.operator.finding_facts()
    assert findings.command("workers") == "freehold workers --tenant ours"
    app.operator.pause_queue(ALL_QUEUES, by="ann")
    assert "freehold tenants resume ours" in text_of(visitor.page(f"/t/ours/jobs/{job.id}"))
    assert ours.app.operator.finding_facts().tenant is None
