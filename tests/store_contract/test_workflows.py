"""Workflows: nodes are released and canceled by the ends of their sources."""

from __future__ import annotations

import msgspec
import pytest

from freehold.errors import IllegalTransition, Refused
from freehold.model.audit import Author
from freehold.model.flow import FlowKind, FlowState, NewFlow, NewNode, NodeDraft, OnFailure
from freehold.model.job import Attempt, NewJob
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.policy import Policy
from freehold.operator import Operator
from freehold.store.statements import Conflict
from freehold.store.types import AttemptEnd
from freehold.store.verbs.flow_actions import retry_flow
from tests.broken_rows import FORBIDDEN, OUT_OF_RANGE, mend, poison
from tests.store_contract.flows import flow_of, settle, swept
from tests.stores import StoreUnderTest, key_of

ANN = Author("ann", "test")


def node(number: int, *sources: int | tuple[int, str], on_failure: str = "cancel") -> NewNode:
    pairs = tuple((each, "") if isinstance(each, int) else each for each in sources)
    return NewNode(
        number=number,
        name=f"n{number}",
        job=NewJob(task=f"t{number}"),
        sources=pairs,
        on_failure=OnFailure(on_failure),
    )


def group(number: int, count: int, *sources: int) -> NewNode:
    jobs = tuple(NewJob(task=f"m{number}") for _ in range(count))
    pairs = tuple((each, "") for each in sources)
    return NewNode(number=number, name=f"n{number}", jobs=jobs, sources=pairs)


def workflow(store: StoreUnderTest, *nodes: NewNode, key: str | None = None) -> int:
    new = NewFlow(kind=FlowKind.WORKFLOW, name="w", key=key)
    return store.store.create_workflow(new, nodes, within=False).id


def claimed(store: StoreUnderTest) -> dict[str, Attempt]:
    settle(store)
    return {each.task: each for each in store.claim()}


def states(store: StoreUnderTest, flow: int) -> list[str | None]:
    settle(store)
    return [
        None if each.state is None else each.state.value for each in store.store.flow_nodes(flow)
    ]


@pytest.mark.requirement("N12")
def test_a_node_waits_for_all_its_sources(store: StoreUnderTest) -> None:
    flow = workflow(store, node(1), node(2), node(3, 1, 2), node(4, 3))
    first = claimed(store)
    assert sorted(first) == ["t1", "t2"]
    store.end(first["t1"], OutcomeKind.SUCCESS)
    assert claimed(store) == {}
    store.end(first["t2"], OutcomeKind.SUCCESS)
    third = claimed(store)
    assert list(third) == ["t3"]
    store.end(third["t3"], OutcomeKind.SUCCESS)
    store.end(claimed(store)["t4"], OutcomeKind.SUCCESS)
    assert states(store, flow) == ["succeeded"] * 4
    assert flow_of(store, flow).state is FlowState.SUCCEEDED


@pytest.mark.requirement("N12")
@pytest.mark.parametrize("kind", [OutcomeKind.FAIL, OutcomeKind.CANCEL])
def test_what_a_bad_source_means(store: StoreUnderTest, kind: OutcomeKind) -> None:
    """Cancel at once, though another source runs; hold and run when all have ended."""
    nodes = [node(3 + i, 1, 2, on_failure=each) for i, each in enumerate(("cancel", "hold", "run"))]
    flow = workflow(store, node(1), node(2), *nodes, node(6, 3))
    first = claimed(store)
    store.end(first["t1"], kind)
    ended = "failed" if kind is OutcomeKind.FAIL else "canceled"
    assert states(store, flow) == [ended, None, "canceled", None, None, "canceled"]
    assert claimed(store) == {}
    store.end(first["t2"], OutcomeKind.SUCCESS)
    (run,) = claimed(store).values()
    assert run.task == "t5"
    store.end(run, OutcomeKind.SUCCESS)
    assert flow_of(store, flow).state is FlowState.OPEN  # one is held
    held = store.store.flow_nodes(flow)[3]
    assert (held.waits, held.open_sources, held.bad_sources) == (True, 0, 1)
    assert held.job_id is not None
    assert store.job(held.job_id).waits_for == f"flow/{flow}"
    store.store.operate(OperatorVerb.CANCEL, [held.job_id], "ann", None)
    settle(store)
    assert flow_of(store, flow).state is FlowState.FAILED


def test_a_held_node_runs_when_its_source_was_retried(store: StoreUnderTest) -> None:
    flow = workflow(store, node(1), node(2, 1, on_failure="hold"))
    attempt = claimed(store)["t1"]
    store.end(attempt, OutcomeKind.FAIL)
    assert claimed(store) == {}
    store.store.operate(OperatorVerb.RETRY, [attempt.job_id], "ann", None)
    store.end(claimed(store)["t1"], OutcomeKind.SUCCESS)
    store.end(claimed(store)["t2"], OutcomeKind.SUCCESS)
    assert states(store, flow) == ["succeeded"] * 2


@pytest.mark.requirement("N12")
def test_results_become_arguments(store: StoreUnderTest) -> None:
    """Also if the history of the source is gone."""
    workflow(store, node(1), node(2, (1, "rows"), (1, "copy")))
    store.end(claimed(store)["t1"], OutcomeKind.SUCCESS, result=b'["\\u00e4", 1.50]')
    settle(store)
    assert claimed(store)["t2"].args in (
        '{"rows":["\\u00e4", 1.50],"copy":["\\u00e4", 1.50]}',
        '{"copy":["\\u00e4", 1.50],"rows":["\\u00e4", 1.50]}',
    )


@pytest.mark.requirement("N12")
def test_a_group_waits_and_is_waited_for(store: StoreUnderTest) -> None:
    flow = workflow(store, node(1), group(2, 1500, 1), node(3, 2))
    first = claimed(store)
    assert list(first) == ["t1"]
    assert store.sql("select count(*) from {s}job where stage = {pending}") == [(1501,)]
    store.end(first["t1"], OutcomeKind.SUCCESS)
    settle(store)
    members = store.claim(count=2000)
    assert len(members) == 1500
    success = Outcome(kind=OutcomeKind.SUCCESS)
    store.store.finish("w1", [AttemptEnd(member, success) for member in members[:-1]])
    assert states(store, flow) == ["succeeded", None, None]
    store.end(members[-1], OutcomeKind.SUCCESS)
    assert states(store, flow) == ["succeeded", "succeeded", None]
    assert list(claimed(store)) == ["t3"]


def test_a_group_whose_retry_succeeds_before_it_is_counted(store: StoreUnderTest) -> None:
    flow = workflow(store, group(1, 1))
    attempt = claimed(store)["m1"]
    store.end(attempt, OutcomeKind.FAIL)
    assert states(store, flow) == ["failed"]
    store.store.operate(OperatorVerb.RETRY, [attempt.job_id], "ann", None)
    (again,) = store.claim()
    store.end(again, OutcomeKind.SUCCESS)
    assert states(store, flow) == ["succeeded"]
    assert flow_of(store, flow).state is FlowState.SUCCEEDED


@pytest.mark.requirement("N12")
def test_a_retry_restores_what_did_not_succeed(store: StoreUnderTest) -> None:
    flow = workflow(store, node(1), node(2, 1), node(3, 2), node(4, 1))
    store.end(claimed(store)["t1"], OutcomeKind.SUCCESS)
    now = claimed(store)
    store.end(now["t2"], OutcomeKind.FAIL)
    store.end(now["t4"], OutcomeKind.SUCCESS)
    assert states(store, flow) == ["succeeded", "failed", "canceled", "succeeded"]
    assert flow_of(store, flow).state is FlowState.FAILED
    assert store.store.retry_flow(flow, ANN) == 2
    assert states(store, flow) == ["succeeded", None, None, "succeeded"]
    again = claimed(store)
    assert list(again) == ["t2"]
    store.end(again["t2"], OutcomeKind.SUCCESS)
    store.end(claimed(store)["t3"], OutcomeKind.SUCCESS)
    assert flow_of(store, flow).state is FlowState.OPEN
    settle(store)
    flow_now = flow_of(store, flow)
    assert (flow_now.state, flow_now.counts.succeeded) == (FlowState.SUCCEEDED, 4)


@pytest.mark.requirement("N12")
def test_sweeps_while_a_workflow_is_retried(store: StoreUnderTest) -> None:
    """A failed source that blocks its lane, and a group behind it that was canceled."""
    first = msgspec.structs.replace(node(1), job=NewJob(task="t1", target="lane"))
    flow = workflow(store, first, group(2, 2, 1), node(3, 2), node(4, 1))
    store.end(claimed(store)["t1"], OutcomeKind.FAIL)
    assert states(store, flow) == ["failed", "canceled", "canceled", "canceled"]
    assert store.store.run(swept(retry_flow(flow, ANN))) == 5
    assert states(store, flow) == [None] * 4
    store.end(claimed(store)["t1"], OutcomeKind.SUCCESS)
    settle(store)
    attempts = store.claim()
    assert [each.task for each in attempts] == ["m2", "m2", "t4"]
    for each in attempts:
        store.end(each, OutcomeKind.SUCCESS)
    store.end(claimed(store)["t3"], OutcomeKind.SUCCESS)
    assert states(store, flow) == ["succeeded"] * 4
    assert flow_of(store, flow).state is FlowState.SUCCEEDED


def test_a_deleted_source_counts_as_canceled(store: StoreUnderTest) -> None:
    flow = workflow(store, node(1), node(2, 1))
    store.store.delete([1])
    assert states(store, flow) == ["canceled", "canceled"]


@pytest.mark.requirement("N12")
def test_added_nodes_know_sources_that_have_ended(store: StoreUnderTest) -> None:
    flow = workflow(store, node(1), node(2), node(3))
    now = claimed(store)
    store.end(now["t1"], OutcomeKind.SUCCESS, result=b"7")
    store.end(now["t2"], OutcomeKind.FAIL)
    settle(store)
    adder = now["t3"]
    new = [node(4, (1, "x")), node(5, 2), node(6, 2, 4, on_failure="run"), node(7, 3)]
    added = store.store.add_nodes(flow, new, adder.owner, key_of(adder))
    assert added is not None
    assert sorted(added) == [4, 5, 6, 7]
    fourth = claimed(store)
    assert {task: each.args for task, each in fourth.items()} == {"t4": '{"x":7}'}
    assert states(store, flow)[3:] == [None, "canceled", None, None]
    with pytest.raises(Conflict):
        store.store.add_nodes(flow, [node(4)], adder.owner, key_of(adder))
    store.end(fourth["t4"], OutcomeKind.SUCCESS)
    assert list(claimed(store)) == ["t6"]


def test_a_hidden_result_is_hidden_in_a_node_that_is_added(store: StoreUnderTest) -> None:
    secret = NewJob(task="t1", policy=Policy(secret_result=True))
    flow = workflow(store, msgspec.structs.replace(node(1), job=secret), node(2))
    first = claimed(store)
    store.end(first["t1"], OutcomeKind.SUCCESS, result=b'"hunter2"')
    draft = NodeDraft("added", (("n1", "key"), ("n1", "copy"), ("n2", "")), OnFailure.CANCEL)
    key = key_of(first["t2"])
    added = store.store.add_node(flow, draft, [NewJob(task="t3")], first["t2"].owner, key)
    assert added is not None
    store.end(first["t2"], OutcomeKind.SUCCESS)
    attempt = claimed(store)["t3"]
    assert "hunter2" in attempt.args
    assert "hunter2" not in store.job(added).args


def test_a_node_that_waits_cannot_be_submitted_or_retried_alone(store: StoreUnderTest) -> None:
    flow = workflow(store, node(1), node(2, 1))
    waiting = store.store.flow_nodes(flow)[1].job_id
    assert waiting is not None
    with pytest.raises(IllegalTransition, match="waits for its sources in flow"):
        store.store.operate(OperatorVerb.SUBMIT, [waiting], "ann", None)
    store.end(claimed(store)["t1"], OutcomeKind.FAIL)
    settle(store)
    with pytest.raises(IllegalTransition, match="retry the workflow"):
        store.store.operate(OperatorVerb.RETRY, [waiting], "ann", None)
    (cause,) = Operator(store.store).explain(waiting)
    assert cause.remedy == f"freehold flow retry {flow} runs it again"


def test_the_key_of_a_workflow(store: StoreUnderTest) -> None:
    first = workflow(store, node(1), key="k")
    assert workflow(store, node(1), key="k") == first
    assert len(store.sql("select * from {s}job")) == 1
    store.end(store.claim_one(), OutcomeKind.SUCCESS)
    settle(store)
    assert workflow(store, node(1), key="k") != first


@pytest.mark.requirement("N12")
def test_a_node_that_the_database_refuses_is_canceled(store: StoreUnderTest) -> None:
    """The other nodes go on, nothing stays due, and a retry runs it when it is mended."""
    how = FORBIDDEN if store.kind == "postgres" else OUT_OF_RANGE
    flow = workflow(store, node(1), node(2, (1, "rows")), node(3, 1), node(4, 2))
    first = claimed(store)["t1"]
    refused = store.store.flow_nodes(flow)[1].job_id
    assert refused is not None
    poison(store, refused, how)
    store.end(first, OutcomeKind.SUCCESS)
    assert states(store, flow) == ["succeeded", "canceled", None, "canceled"]
    mend(store, refused, 0, 3)
    assert "the database refuses to release it" in (store.job(refused).reason or "")
    assert list(claimed(store)) == ["t3"]
    assert store.store.retry_flow(flow, ANN) == 2
    assert list(claimed(store)) == ["t2"]


def test_a_canceled_member_of_a_map_cannot_be_retried_alone(store: StoreUnderTest) -> None:
    """It would start before the sources of its node."""
    flow = workflow(store, node(1), group(2, 1, 1))
    store.end(claimed(store)["t1"], OutcomeKind.FAIL)
    assert states(store, flow) == ["failed", "canceled"]
    with pytest.raises(IllegalTransition, match="retry the workflow"):
        store.store.operate(OperatorVerb.RETRY, [1], "ann", None)  # members come first
    assert Operator(store.store).explain(1)[0].remedy == "retry its workflow"
    assert claimed(store) == {}
    assert store.store.retry_flow(flow, ANN) == 2
    assert list(claimed(store)) == ["t1"]


@pytest.mark.parametrize("kind", [OutcomeKind.SUCCESS, OutcomeKind.FAIL])
def test_a_map_of_nothing_waits_for_its_sources(store: StoreUnderTest, kind: OutcomeKind) -> None:
    last = node(4, 2, on_failure="run")
    flow = workflow(store, node(1), group(2, 0, 1), node(3, 2), last, node(5))
    first = claimed(store)
    assert sorted(first) == ["t1", "t5"]
    assert states(store, flow) == [None] * 5
    added = store.store.add_nodes(flow, [node(6, 2)], first["t5"].owner, key_of(first["t5"]))
    assert added is not None
    assert claimed(store) == {}
    store.end(first["t1"], kind)
    if kind is OutcomeKind.FAIL:
        ended = ["failed", "canceled", "canceled", None, None, "canceled"]
        assert states(store, flow) == ended
        assert list(claimed(store)) == ["t4"]
        assert store.store.retry_flow(flow, ANN) == 3
        assert states(store, flow)[:3] == [None] * 3
        store.end(claimed(store)["t1"], OutcomeKind.SUCCESS)
        assert sorted(claimed(store)) == ["t3", "t6"]
        return
    assert states(store, flow) == ["succeeded", "succeeded", None, None, None, None]
    assert sorted(claimed(store)) == ["t3", "t4", "t6"]


def test_a_canceled_workflow_with_a_map_of_nothing(store: StoreUnderTest) -> None:
    flow = workflow(store, node(1), group(2, 0, 1))
    settle(store)
    assert store.store.cancel_flow(flow, ANN)
    assert states(store, flow) == ["canceled"] * 2
    assert flow_of(store, flow).state is FlowState.CANCELED


def test_a_map_that_succeeded_in_spite_of_a_cancel_is_canceled_by_the_next_one(
    store: StoreUnderTest,
) -> None:
    flow = workflow(store, group(1, 1), node(2))
    running = claimed(store)
    assert store.store.cancel_flow(flow, ANN)
    settle(store)
    store.end(running["m1"], OutcomeKind.SUCCESS)
    store.end(running["t2"], OutcomeKind.CANCEL)
    assert states(store, flow) == ["succeeded", "canceled"]
    assert store.store.retry_flow(flow, ANN) == 1
    store.store.operate(OperatorVerb.RETRY, [running["m1"].job_id], "ann", None)
    assert states(store, flow) == [None, None]
    assert store.store.cancel_flow(flow, ANN)
    assert states(store, flow) == ["canceled", "canceled"]
    assert claimed(store) == {}


def test_a_map_of_a_canceled_workflow_waits_no_longer(store: StoreUnderTest) -> None:
    """Also if it is open, because a member was retried alone, and runs."""
    flow = workflow(store, node(1), group(2, 2, 1))
    source = claimed(store)["t1"]
    store.end(source, OutcomeKind.SUCCESS)
    settle(store)
    succeeds, fails = store.claim()
    store.end(succeeds, OutcomeKind.SUCCESS)
    store.end(fails, OutcomeKind.FAIL)
    settle(store)
    store.store.operate(OperatorVerb.RETRY, [source.job_id], "ann", None)
    store.end(claimed(store)["t1"], OutcomeKind.FAIL)
    settle(store)
    assert store.store.retry_flow(flow, ANN) == 2
    store.store.operate(OperatorVerb.RETRY, [succeeds.job_id], "ann", None)
    assert sorted(claimed(store)) == ["m2", "t1"]
    assert [each.waits for each in store.store.flow_nodes(flow)] == [False, True]
    assert store.store.cancel_flow(flow, ANN)
    settle(store)
    assert [each.waits for each in store.store.flow_nodes(flow)] == [False, False]


@pytest.mark.parametrize("how", ["workflow", "node"])
def test_a_workflow_that_is_open_again_has_its_key(store: StoreUnderTest, how: str) -> None:
    first = workflow(store, node(1), key="k")
    (attempt,) = claimed(store).values()
    store.end(attempt, OutcomeKind.FAIL)
    settle(store)
    if how == "workflow":
        store.store.retry_flow(first, ANN)
    else:
        store.store.operate(OperatorVerb.RETRY, [attempt.job_id], "ann", None)
        settle(store)
    assert workflow(store, node(1), key="k") == first


def test_a_workflow_whose_key_another_one_has_is_not_retried(store: StoreUnderTest) -> None:
    first = workflow(store, node(1), key="k")
    (attempt,) = claimed(store).values()
    store.end(attempt, OutcomeKind.FAIL)
    settle(store)
    second = workflow(store, node(1), key="k")
    with pytest.raises(Refused, match=f"'k' now belongs to workflow {second}"):
        store.store.retry_flow(first, ANN)
    store.store.operate(OperatorVerb.RETRY, [attempt.job_id], "ann", None)
    settle(store)
    assert workflow(store, node(1), key="k") == second
    for each in store.claim():
        store.end(each, OutcomeKind.SUCCESS)
    settle(store)
    assert flow_of(store, first).state is FlowState.SUCCEEDED


def test_two_workflows_with_one_key_are_open_again_at_once(store: StoreUnderTest) -> None:
    """The first one gets it. Another flow is folded with them."""
    flows, failed = list[int](), list[int]()
    for _ in range(2):
        flows.append(workflow(store, node(1), key="k"))
        (attempt,) = claimed(store).values()
        store.end(attempt, OutcomeKind.FAIL)
        failed.append(attempt.job_id)
        settle(store)
    other = workflow(store, node(1))
    settle(store)
    store.end(store.claim_one(), OutcomeKind.SUCCESS)
    store.store.operate(OperatorVerb.RETRY, failed, "ann", None)
    assert not store.store.advance_flows().is_left
    assert flow_of(store, other).state is FlowState.SUCCEEDED
    assert [flow_of(store, each).state for each in flows] == [FlowState.OPEN] * 2
    assert workflow(store, node(1), key="k") == flows[0]
