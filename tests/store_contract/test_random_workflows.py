"""Random workflows against an oracle: sources, failures, cancels, deletions, retries and additions,
in any order."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import pytest

from freehold.errors import IllegalTransition, Refused
from freehold.model.audit import Author
from freehold.model.flow import FlowKind, NewFlow, NewNode, OnFailure
from freehold.model.job import Attempt, NewJob
from freehold.model.operator_actions import OperatorVerb
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.store.types import AttemptEnd
from freehold.store.verbs.flow_actions import cancel_flow, retry_flow
from tests.oracle_flows import BAD, OracleJob, OracleWorkflow
from tests.sizes import sized
from tests.store_contract.flows import flow_of, settle, swept
from tests.stores import StoreUnderTest, key_of

SEEDS = sized("WORKFLOW_SEEDS", short=12, long=200)
NODES = sized("WORKFLOW_NODES", short=40, long=500)
ACTIONS = sized("WORKFLOW_ACTIONS", short=50, long=150)
ANN = Author("ann", "test")
_MODES = ("cancel", "cancel", "cancel", "hold", "run")
_OUTCOMES = {
    OutcomeKind.SUCCESS: "succeeded",
    OutcomeKind.FAIL: "failed",
    OutcomeKind.CANCEL: "canceled",
}
_STATES = """
    select id, case stage when {pending} then 'waiting' when {ready} then 'ready'
        when {leased} then 'running' else 'of another stage' end from {s}job
    union all select id, state from {s}history
"""


class RandomWorkflow:
    """One workflow in the store and in the oracle, to which the same things happen."""

    def __init__(self, store: StoreUnderTest, seed: int) -> None:
        self.store = store
        self.chance = random.Random(seed)
        self.oracle = OracleWorkflow()
        self.jobs: dict[int, OracleJob] = {}
        self.number_of: dict[int, int] = {}
        self.running: dict[int, Attempt] = {}
        new = NewFlow(kind=FlowKind.WORKFLOW, name="w")
        nodes = [self._new_node(number) for number in range(1, NODES + 1)]
        created = store.store.create_workflow(new, nodes, within=False)
        self.flow = created.id
        for number, ids in created.jobs.items():
            self._note(number, ids)

    def _new_node(self, number: int, sources: tuple[int, ...] | None = None) -> NewNode:
        if sources is None:
            near = range(max(1, number - 15), number)
            count = min(len(near), self.chance.choice((0, 1, 1, 1, 2, 3)))
            sources = tuple(self.chance.sample(near, count))
        mode = self.chance.choice(_MODES)
        is_group = number <= NODES and self.chance.random() < 0.2
        size = self.chance.choice((0, 1, 2, 3)) if is_group else None
        self.oracle.add(number, sources, mode, size)
        job = NewJob(task="t")
        return NewNode(
            number=number,
            name=f"n{number}",
            job=None if is_group else job,
            jobs=(job,) * (size or 0),
            sources=tuple((source, "") for source in sources),
            on_failure=OnFailure(mode),
        )

    def _note(self, number: int, ids: list[int]) -> None:
        for job_id, job in zip(ids, self.oracle.nodes[number].jobs, strict=True):
            self.jobs[job_id], self.number_of[job_id] = job, number

    # -- what happens ------------------------------------------------------------------------

    def act(self) -> None:
        actions: list[tuple[int, Callable[[], None]]] = [
            (12, self.claim),
            (12, self.end_some),
            (2, self.cancel_some),
            (1, self.delete_one),
            (4, self.retry_one),
            (2, self.add_node),
            (1, self.cancel_workflow),
            (2, self.retry_workflow),
            (4, self.check),
        ]
        weights = [weight for weight, _ in actions]
        self.chance.choices(actions, weights)[0][1]()

    def claim(self, all_of_them: bool = False) -> None:
        count = 1000 if all_of_them else self.chance.randint(1, 12)
        for attempt in self.store.claim(count=count, lease_seconds=1e6):
            job = self.jobs[attempt.job_id]
            assert job.state == "ready", (attempt.job_id, job)
            job.state = "running"
            self.running[attempt.job_id] = attempt

    def end_some(self, success: float = 0.75) -> None:
        chosen = [each for each in sorted(self.running) if self.chance.random() < 0.7]
        ends = []
        for job_id in chosen:
            job = self.jobs[job_id]
            kind = OutcomeKind.SUCCESS
            if self.chance.random() > success:
                stops = (OutcomeKind.CANCEL,) if job.is_asked_to_stop else tuple(_OUTCOMES)[1:]
                kind = self.chance.choice(stops)
            job.state, job.is_asked_to_stop = _OUTCOMES[kind], False
            ends.append(AttemptEnd(self.running.pop(job_id), Outcome(kind=kind)))
        if ends:
            assert not self.store.store.finish("w1", ends).lost

    def cancel_some(self) -> None:
        """Also jobs that have failed, which are resolved by that."""
        self.check()
        for job_id in self._some("waiting", "ready", "failed", "running", count=2):
            job = self.jobs[job_id]
            self.store.store.operate(OperatorVerb.CANCEL, [job_id], "ann", None)
            if job.state == "failed":
                job.state = "canceled"
            job.cancel()
            self.check()

    def delete_one(self) -> None:
        self.check()
        for job_id in self._some("waiting", "ready", "succeeded", *BAD):
            job = self.jobs[job_id]
            self.store.store.delete([job_id])
            job.is_deleted = True
            job.cancel()
        self.check()

    def retry_one(self) -> None:
        """A canceled one would not wait for its sources."""
        for job_id in self._some("succeeded", *BAD):
            job = self.jobs[job_id]
            if job.state == "canceled":
                with pytest.raises(IllegalTransition, match="retry the workflow"):
                    self.store.store.operate(OperatorVerb.RETRY, [job_id], "ann", None)
            elif self.number_of[job_id] in self._single:
                self._retry(job_id)
            else:  # the workflow hears of it a moment later than of ends of its other nodes
                self.check()
                self._retry(job_id)
                self.check()

    def _retry(self, job_id: int) -> None:
        self.store.store.operate(OperatorVerb.RETRY, [job_id], "ann", None)
        self.jobs[job_id].state = "ready"

    def add_node(self) -> None:
        adders = sorted(self.running)
        if not adders or self.number_of[adders[0]] not in self._single:
            return
        adder = self.running[adders[0]]
        number = max(self.oracle.nodes) + 1
        count = self.chance.randint(0, 3)
        sources = tuple(self.chance.sample(sorted(self.oracle.nodes), count))
        if not self.oracle.is_canceled:
            self.check()
            new = [self._new_node(number, sources)]
            added = self.store.store.add_nodes(self.flow, new, adder.owner, key_of(adder))
            assert added is not None
            self._note(number, [added[number]])

    @property
    def _single(self) -> set[int]:
        return {number for number, node in self.oracle.nodes.items() if not node.is_group}

    def cancel_workflow(self) -> None:
        self.check()
        verb = cancel_flow(self.flow, ANN)
        canceled = self.store.store.run(swept(verb) if self.chance.random() < 0.5 else verb)
        assert canceled == self.oracle.cancel()
        self.check()

    def retry_workflow(self) -> None:
        """With sweeps between its transactions, or without."""
        self.check()
        verb = retry_flow(self.flow, ANN)
        if self.oracle.is_canceled and self.oracle.state == "open":
            with pytest.raises(Refused, match="is being canceled"):
                self.store.store.run(verb)
            return
        retried = self.store.store.run(swept(verb) if self.chance.random() < 0.5 else verb)
        assert retried == self.oracle.retry()
        self.check()

    def _some(self, *states: str, count: int = 1) -> list[int]:
        found = [
            job_id
            for job_id, job in sorted(self.jobs.items())
            if job.state in states and not job.is_deleted
        ]
        return self.chance.sample(found, min(count, len(found)))

    # -- what is compared --------------------------------------------------------------------

    def check(self) -> None:
        settle(self.store)
        self.oracle.settle()
        wanted = {job_id: job.state for job_id, job in self.jobs.items() if not job.is_deleted}
        found = dict(self.store.sql(_STATES))
        assert self._different(found, wanted) == {}
        nodes = {node.number: node for node in self.store.store.flow_nodes(self.flow)}
        ends = {n: None if node.state is None else str(node.state) for n, node in nodes.items()}
        oracle = self.oracle.nodes
        assert self._different(ends, {n: node.end for n, node in oracle.items()}) == {}
        waits = {n: node.waits for n, node in nodes.items()}
        assert self._different(waits, {n: node.waits for n, node in oracle.items()}) == {}
        flow = flow_of(self.store, self.flow)
        found_counts = (flow.state, flow.counts.succeeded, flow.counts.failed, flow.counts.canceled)
        count = [*ends.values()].count
        assert found_counts == (self.oracle.state, *map(count, ("succeeded", *BAD)))
        assert flow.counts.total == len(oracle)

    @staticmethod
    def _different(found: Mapping[int, object], wanted: Mapping[int, object]) -> dict[int, object]:
        keys = found.keys() | wanted.keys()
        both = {key: (found.get(key), wanted.get(key)) for key in sorted(keys)}
        return {key: pair for key, pair in both.items() if pair[0] != pair[1]}

    def run_to_the_end(self) -> None:
        """Everything succeeds from now on, and is retried until nothing more runs."""
        for _ in range(3):
            while True:
                self.check()
                self.claim(all_of_them=True)
                if not self.running:
                    break
                self.end_some(success=1)
            self.retry_workflow()


@pytest.mark.requirement("N12")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_workflow_is_as_the_oracle_says(store: StoreUnderTest, seed: int) -> None:
    workflow = RandomWorkflow(store, seed)
    for _ in range(ACTIONS):
        workflow.act()
    workflow.run_to_the_end()
