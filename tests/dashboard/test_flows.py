"""Pages about batches and workflows: lists, one with its graph and jobs, and actions on it."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from html import unescape

import pytest
from click.testing import CliRunner

from freehold import Context, Freehold
from freehold.cli import main
from freehold.dashboard.watcher import Watcher
from tests.dashboard.browser_client import BrowserClient, text_of

pytestmark = pytest.mark.requirement("N14")


def batch(app: Freehold, good: int = 2, bad: int = 1) -> int:
    greet, broken = app.tasks.get("greet"), app.tasks.get("broken")
    jobs = [
        *(greet.prepare("ann") for _ in range(good)),
        *(broken.prepare("x") for _ in range(bad)),
    ]
    return app.batch(jobs, name="letters", on_end=greet.prepare("all")).id


def workflow(app: Freehold) -> int:
    """A diamond with a group, a node that will be held, and one that will be canceled."""
    greet, broken = app.tasks.get("greet"), app.tasks.get("broken")
    with app.workflow("import", key="2030-01") as flow:
        first = flow.add(greet, "ann", name="first")
        bad = flow.add(broken, "x", name="bad", after=first)
        group = flow.map(greet, ["a", "b"], name="group", after=first)
        flow.add(greet, "x", name="held", after=[bad, group, first], on_failure="hold")
        flow.add(greet, "x", name="<last>", after=bad)
    return flow.id


def test_a_batch_shows_its_counts_callbacks_and_jobs(board: BrowserClient) -> None:
    flow_id = batch(board.app)
    board.work()
    visitor = board.visitor()
    listed = visitor.page("/batches")
    assert f'href="/ui/flows/{flow_id}"' in listed
    assert "letters ✕ failed 3 of 3, 1 failed" in text_of(listed)
    assert "letters" not in text_of(visitor.page("/batches?state=open"))
    assert "letters" not in text_of(visitor.page("/batches?kind=gather"))
    page = visitor.page(f"/flows/{flow_id}")
    (released,) = [each.job_id for each in board.app.operator.flow_detail(flow_id).callbacks]
    assert f"On end job {released}" in text_of(page)
    assert len(re.findall(r'<tr id="job-', page)) == 3
    assert len(re.findall(r'<tr id="job-', visitor.page(f"/flows/{flow_id}?state=failed"))) == 1
    member = board.app.operator.flow_members(flow_id).jobs[0].id
    for job_id, words in ((member, "Part of"), (released, "Follows")):
        assert f"{words} batch {flow_id} letters" in text_of(visitor.page(f"/jobs/{job_id}"))


def test_a_gather_names_the_job_that_waits_for_it(sqlite_board: BrowserClient) -> None:
    app = sqlite_board.app
    greet = app.tasks.get("greet")

    @app.task(name="book")
    async def book(ctx: Context) -> int:
        return len(await ctx.gather("pages", [greet.prepare("a"), greet.prepare("b")]))

    job = book.enqueue()
    sqlite_board.work()
    visitor = sqlite_board.visitor()
    listed = visitor.page("/batches?kind=gather")
    assert f"of job {job.id} ✓ succeeded 2 of 2" in text_of(listed)
    found = re.search(r'href="/ui(/flows/\d+)"', listed)
    assert found
    assert f"Gathered by job {job.id}" in text_of(visitor.page(found[1]))


def test_jobs_of_a_batch_come_in_pages(sqlite_board: BrowserClient) -> None:
    flow_id = batch(sqlite_board.app, 120, 0)
    visitor, path, seen = sqlite_board.visitor(), f"/flows/{flow_id}", []
    while path:
        page = visitor.page(path)
        seen += re.findall(r'<tr id="job-(\d+)', page)
        following = re.search(r'href="(/ui/flows/[^"]*after=[^"#]*)#members">Next', page)
        path = unescape(following[1]).removeprefix("/ui") if following else ""
    assert len(seen) == len(set(seen)) == 120


def test_a_workflow_shows_its_nodes_and_draws_them_without_styles(board: BrowserClient) -> None:
    flow_id = workflow(board.app)
    board.work()
    visitor = board.visitor()
    assert "import 2030-01 ▶ open" in text_of(visitor.page("/workflows"))
    page = visitor.page(f"/flows/{flow_id}")
    text = text_of(page)
    assert "1 node waits for you" in text
    assert "held ‖ held" in text
    picture = page[page.index('<svg class="graph"') : page.index("</svg></div>")]
    assert len(re.findall("<rect", picture)) == 5
    assert "&lt;last&gt;" in picture
    assert "style" not in picture
    group = next(each for each in board.app.operator.flow_detail(flow_id).nodes if each.group)
    assert f'href="/ui/flows/{group.group}"' in picture
    assert f"Group of workflow {flow_id}" in text_of(visitor.page(f"/flows/{group.group}"))


def test_a_large_workflow_is_a_table_in_pages(sqlite_board: BrowserClient) -> None:
    greet = sqlite_board.app.tasks.get("greet")
    with sqlite_board.app.workflow("wide") as flow:
        for number in range(201):
            flow.add(greet, "x", name=f"n{number}")
    visitor = sqlite_board.visitor()
    page = visitor.page(f"/flows/{flow.id}")
    assert '<svg class="graph"' not in page
    assert "too large to be drawn" in text_of(page)
    assert "200 nodes of 201 shown" in text_of(page)
    following = re.search(r'href="/ui(/flows/[^"]*node=[^"#]*)#nodes">Next', page)
    assert following
    assert "1 node of 201 shown" in text_of(visitor.page(unescape(following[1])))


# -- actions ---------------------------------------------------------------------------------


def test_a_workflow_is_retried_and_canceled_with_a_reason(board: BrowserClient) -> None:
    flow_id = workflow(board.app)
    board.work()
    visitor, path = board.visitor(), f"/flows/{flow_id}"
    text = text_of(visitor.page(path))
    assert "2 nodes that failed or were canceled will run again" in text
    assert "1 node that has not ended will be canceled" in text
    retried = visitor.done(f"{path}/retry", {"reason": "mended"})
    assert f"Workflow {flow_id} has 2 jobs to run again." in retried
    refused = visitor.post(f"{path}/cancel")
    assert refused.status_code == 422
    assert "Give a reason" in text_of(refused.text)
    assert board.app.operator.flow(flow_id).canceled_at is None
    canceled = visitor.done(f"{path}/cancel", {"reason": "wrong month"})
    assert f"Workflow {flow_id} is canceled." in canceled
    assert "Canceled by" in text_of(canceled)
    assert "wrong month" in text_of(visitor.page("/workflows"))
    assert "was already canceled" in visitor.done(f"{path}/cancel", {"reason": "again"})
    done = [(e.verb, e.via, e.reason) for e in board.app.operator.audit().entries]
    assert done == [("cancel", "dashboard", "wrong month"), ("retry", "dashboard", "mended")]


def test_a_batch_without_a_seal_is_sealed(board: BrowserClient) -> None:
    with suppress(KeyError), board.app.open_batch("crawl") as found:
        found.add([board.app.tasks.get("greet").prepare("ann")])
        raise KeyError("the producer dies")
    visitor, path = board.visitor(), f"/flows/{found.id}"
    assert "◌ not sealed" in text_of(visitor.page("/batches"))
    assert f"freehold flow seal {found.id}" in text_of(visitor.page(path))
    assert f"Batch {found.id} is sealed." in visitor.done(f"{path}/seal", {"reason": "gone"})
    assert "was already sealed" in visitor.done(f"{path}/seal")
    assert board.app.operator.flow(found.id).sealed_at is not None
    assert f"freehold flow seal {found.id}" not in visitor.page(path)


def test_a_viewer_has_no_actions(secured: BrowserClient) -> None:
    flow_id = batch(secured.app)
    command = f"freehold flow cancel {flow_id}"
    assert command not in secured.visitor("viewer").page(f"/flows/{flow_id}")
    assert command in secured.visitor("operator").page(f"/flows/{flow_id}")


def test_a_flow_that_does_not_exist_is_not_found(sqlite_board: BrowserClient) -> None:
    response = sqlite_board.visitor().get("/flows/999")
    assert response.status_code == 404
    assert "there is no batch or workflow 999" in text_of(response.text).lower()


def test_pages_of_a_tenant_have_its_flows_links_and_commands(sqlite_board: BrowserClient) -> None:
    sqlite_board.app.tenants.create("ours")
    tenant = sqlite_board.app.tenant("ours")
    flow_id = batch(tenant)
    visitor = sqlite_board.visitor()
    assert "letters" not in text_of(visitor.page("/batches"))
    assert f'href="/ui/t/ours/flows/{flow_id}"' in visitor.page("/t/ours/batches")
    page = visitor.page(f"/t/ours/flows/{flow_id}")
    links = re.findall(r'(?:href|action)="(/ui/[^"]*flows[^"]*)"', page)
    assert links
    assert all(each.startswith("/ui/t/ours/") for each in links)
    for command in re.findall(r"<code>(freehold [^<]*)<", page):
        words = shlex.split(unescape(command))
        assert words[-2:] == ["--tenant", "ours"]
        assert CliRunner().invoke(main, [*words[1:], "--help"]).exit_code == 0


# -- findings and changes --------------------------------------------------------------------


def test_a_node_that_holds_is_found_and_leads_to_its_workflow(board: BrowserClient) -> None:
    flow_id = workflow(board.app)
    board.work()
    assert f'<a class="button" href="/ui/flows/{flow_id}">Retry</a>' in board.visitor().page("/")


def test_open_pages_notice_changes_of_flows(board: BrowserClient) -> None:
    flow_id = workflow(board.app)
    batch_id = batch(board.app)
    topics = ("workflows", "batches", f"flow-{flow_id}", f"flow-{batch_id}")
    before = [board.run(Watcher(board.app).read(topic)) for topic in topics]
    assert before == [board.run(Watcher(board.app).read(topic)) for topic in topics]
    board.work()
    after = [board.run(Watcher(board.app).read(topic)) for topic in topics]
    assert all(old != new for old, new in zip(before, after, strict=True))
    assert board.run(Watcher(board.app).read("flow-999")) is None
