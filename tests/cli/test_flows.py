"""`freehold flows`, `freehold batches` and `freehold flow`."""

from __future__ import annotations

from typing import Any

import pytest

from freehold.cli.flow_view import flow_table, flow_view
from freehold.model.flow import FlowState
from freehold.model.job import NewJob
from freehold.model.outcome import OutcomeKind
from freehold.operator import Operator
from freehold.store.verbs import flows as flow_verbs
from tests.cli.shell import Shell
from tests.cli.test_tables import lines
from tests.flow_examples import end_all, held_flow, import_flow
from tests.store_contract.flows import batch_of, flow_of, members, settle


def test_flows_and_batches_are_listed(shell: Shell) -> None:
    assert shell("flows").out == "no flows\n"
    assert shell("batches").out == "no batches\n"
    store = shell.store
    batch = batch_of(store, *members(2), name="mails")
    flow = import_flow(store, key="2026-11-18")
    end_all(store, t=OutcomeKind.FAIL)
    listed = shell("flows").out
    for text in ("mails", "failed", "workflow", "nightly", "open", "2026-11-18"):
        assert text in listed
    only = shell("batches", "--json").json
    assert [each["id"] for each in only["flows"]] == [batch]
    assert only["flows"][0]["counts"]["failed"] == 2
    first = shell("flows", "--limit", "1").out
    assert f"more: --before {flow}" in first
    page = shell("flows", "--before", str(flow), "--state", "failed", "--json").json
    assert [each["id"] for each in page["flows"]] == [batch]
    assert shell("flows", "--kind", "gather").out == "no gathers\n"


def test_a_workflow_is_shown_as_a_graph(shell: Shell) -> None:
    flow = held_flow(shell.store)
    shown = shell("flow", "show", str(flow)).out
    rows = {row.split()[0]: row.split()[1:] for row in shown.splitlines() if row.strip()}
    assert rows["nodes"][1:] == ["2", "succeeded,", "1", "failed,", "1", "open"]
    assert rows["extract"][0] == "succeeded"
    assert rows["clean"][0] == "failed"
    assert rows["load"] == ["succeeded", "extract", "2:", "2", "succeeded"]
    assert rows["report"][0] == "held"
    assert rows["report"][-3:] == ["clean,", "load", "hold"]
    assert "swordfish" not in shown
    mermaid = shell("flow", "show", str(flow), "--mermaid").out
    assert mermaid.startswith("flowchart TD\n")
    assert "n2 --> n4" in mermaid
    nodes = shell("flow", "show", str(flow), "--json").json["nodes"]
    assert [node["sources"] for node in nodes] == [[], [1], [1], [2, 3]]
    assert "swordfish" not in str(nodes)


def test_a_node_has_the_state_of_its_job(shell: Shell) -> None:
    flow = import_flow(shell.store)
    shell.store.claim_one()
    states = [node["state"] for node in shell("flow", "show", str(flow), "--json").json["nodes"]]
    assert states == ["assigned", "waiting", "waiting", "waiting"]


def test_a_batch_is_shown_with_its_callbacks_and_members(shell: Shell) -> None:
    store = shell.store
    end = NewJob(task="report", queue="later")
    batch = batch_of(store, *members(3), failure=end, success=end)
    store.end(store.claim_one(), OutcomeKind.FAIL)
    settle(store)
    shown = shell("flow", "show", str(batch)).out
    assert "3: 1 failed, 2 open" in shown
    assert "on_success  not released" in shown
    assert "has no graph" in shell.refused("flow", "show", str(batch), "--mermaid", code=2)
    listed = shell("flow", "members", str(batch), "--state", "failed", "--json").json
    assert [job["state"] for job in listed["jobs"]] == ["failed"]
    page = shell("flow", "members", str(batch), "--limit", "2")
    assert f"more: --after {listed['jobs'][0]['id'] + 1}" in page.out
    end_all(store)
    assert "on_failure  job " in shell("flow", "show", str(batch)).out


def test_a_flow_is_canceled_and_retried_with_a_reason(shell: Shell) -> None:
    store = shell.store
    batch = batch_of(store, *members(3))
    store.end(store.claim_one(), OutcomeKind.SUCCESS)
    done = shell("flow", "cancel", str(batch), "--reason", "wrong file", "--by", "ann")
    assert done.out == f"batch {batch} is canceled\n"
    assert shell("flow", "cancel", str(batch)).out == f"batch {batch} is already canceled\n"
    assert flow_of(store, batch).state is FlowState.CANCELED
    assert "by ann: wrong file" in shell("flow", "show", str(batch)).out
    assert shell("flow", "cancel", str(batch), "--json").json["canceled"] is False
    retried = shell("flow", "retry", str(batch), "--reason", "right file", "--by", "bob").out
    assert retried == f"2 jobs of batch {batch} will run again\n"
    assert shell("flow", "retry", str(batch), "--json").json["jobs"] == 0
    entries = shell("audit", "--kind", "flow", "--json").json["entries"]
    found = {(each["verb"], each["by"], each["via"], each["reason"]) for each in entries}
    assert ("cancel", "ann", "cli", "wrong file") in found
    assert ("retry", "bob", "cli", "right file") in found


def test_a_large_flow_is_canceled_by_the_workers(shell: Shell) -> None:
    store = shell.store
    batch = batch_of(store, *members(201))
    done = shell("flow", "cancel", str(batch), "--by", "ann").out
    assert done == f"batch {batch} is being canceled: 201 jobs have not ended yet\n"
    again = shell("flow", "cancel", str(batch)).out
    assert again == f"batch {batch} is already being canceled\n"
    assert "is being canceled" in shell.refused("flow", "retry", str(batch), code=1)
    settle(store)
    assert flow_of(store, batch).counts.canceled == 201


def test_a_workflow_is_canceled_with_its_groups(shell: Shell) -> None:
    flow = import_flow(shell.store)
    assert shell("flow", "cancel", str(flow)).out == f"workflow {flow} is canceled\n"
    states = [node["state"] for node in shell("flow", "show", str(flow), "--json").json["nodes"]]
    assert states == ["canceled"] * 4


def test_a_batch_whose_producer_is_gone_is_sealed(shell: Shell) -> None:
    store = shell.store
    batch = batch_of(store, *members(1), sealed=False)
    assert "not sealed" in shell("batches").out
    end_all(store)
    assert flow_of(store, batch).state is FlowState.OPEN
    assert shell("flow", "seal", str(batch)).out == f"batch {batch} is sealed\n"
    settle(store)
    assert flow_of(store, batch).state is FlowState.SUCCEEDED
    assert shell("flow", "seal", str(batch)).out == f"batch {batch} was already sealed\n"
    assert len(shell("audit", "--kind", "flow", "--json").json["entries"]) == 1


@pytest.mark.parametrize("verb", ["show", "members", "cancel", "retry", "seal"])
@pytest.mark.parametrize("flow_id", ["7", "0", "99999999999999999999"])
def test_an_unknown_flow_is_refused(shell: Shell, verb: str, flow_id: str) -> None:
    refused = shell.refused("flow", verb, flow_id, code=1)
    assert f"there is no batch or workflow {flow_id}" in refused


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("flows", "--limit", "0"), "--limit"),
        (("flows", "--before", "0"), "before=0"),
        (("flows", "--kind", "group"), "--kind"),
        (("batches", "--state", "done"), "--state"),
        (("flow", "show", "1", "--json", "--mermaid"), "--mermaid excludes --json"),
        (("flow", "cancel", "1", "--by", ""), "by ''"),
    ],
)
def test_a_wrong_option_is_refused(
    sqlite_shell: Shell, args: tuple[str, ...], expected: str
) -> None:
    assert expected in sqlite_shell.refused(*args, code=2)


def test_flows_fit_80_columns(sqlite_shell: Shell) -> None:
    store = sqlite_shell.store
    flow = import_flow(store, name="a-workflow-with-a-rather-long-name", key="k" * 60)
    batch_of(store, *members(1200), name="thousands", sealed=False)
    end_all(store, t=OutcomeKind.FAIL)
    operator = Operator(store.store)
    shown = [
        *lines(flow_table(operator.flow_page(), operator.now())),
        *lines(flow_view(operator.flow_detail(flow), operator.now())),
    ]
    assert max(map(len, shown)) <= 80
    assert "not sealed" in shown[2]
    assert "99/1,200" in shown[2]


def test_doctor_and_top_show_flows(shell: Shell) -> None:
    store = shell.store
    flow = held_flow(store)
    batch_of(store, *members(1), sealed=False)
    end_all(store)
    found = Operator(store.store).findings()
    assert [each.text for each in found if each.check == "flows"] == [
        f"1 node of workflow {flow} (nightly) holds, because a source did not succeed"
    ]
    resting = store.store.resting_flows(10)
    assert [(each.flow.kind, each.held_nodes) for each in resting] == [
        ("workflow", 1),
        ("batch", 0),
    ]
    assert f"workflow {flow} (nightly) holds" in shell("doctor").out
    line = next(row for row in shell("top", "--once").out.splitlines() if row.startswith("Flows"))
    assert "2 open" in line
    assert f"workflow {flow} nightly 3/4 1 failed" in line


def test_open_flows_are_found_below_newer_ones_that_have_closed(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_verbs, "WINDOW", 2)
    store = shell.store
    first = batch_of(store, *members(1), sealed=False)
    for _ in range(3):
        batch_of(store, *members(1))
    end_all(store)
    operator = Operator(store.store)
    assert [each.state for each in operator.flows(limit=2)] == ["succeeded"] * 2
    assert operator.flow_load().open == 1
    assert [each.flow.id for each in store.store.resting_flows(10)] == [first]


def test_a_page_with_a_rare_filter_looks_at_a_window(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_verbs, "WINDOW", 2)
    store = shell.store
    first = batch_of(store)
    for _ in range(3):
        import_flow(store)
    found: list[int] = []
    page: dict[str, Any] = {"next": 10**9}
    for _ in range(4):  # of 7 flows, because a group is one
        page = shell("batches", "--before", str(page["next"]), "--json").json
        found += [each["id"] for each in page["flows"]]
    assert (found, page["next"]) == ([first], None)
    assert "more: --before" in shell("batches").out
