"""What a workflow must look like once everything that happened to it is counted.

Written from the rules of `docs/workflows.md` alone: no worklist, no counters. A settled workflow is
the fixed point of a few sentences about the states of jobs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

BAD = ("failed", "canceled")
ENDED = ("succeeded", *BAD)


@dataclass
class OracleJob:
    #: waiting (for the sources of its node), ready, running, succeeded, failed or canceled.
    state: str
    is_asked_to_stop: bool = False
    is_deleted: bool = False

    def cancel(self) -> None:
        if self.state == "running":
            self.is_asked_to_stop = True
        elif self.state not in ENDED:
            self.state = "canceled"


@dataclass
class OracleNode:
    number: int
    sources: tuple[int, ...]
    on_failure: str
    jobs: list[OracleJob]
    is_group: bool = False
    #: Neither released nor canceled.
    waits: bool = False
    #: As a whole: what its end is called if not all of its jobs succeed.
    is_canceled: bool = False

    @property
    def end(self) -> str | None:
        states = [job.state for job in self.jobs]
        if not self.is_group:
            return states[0] if states[0] in ENDED else None
        if any(state not in ENDED for state in states) or (self.waits and not states):
            return None
        if all(state == "succeeded" for state in states) and (states or not self.is_canceled):
            return "succeeded"
        return "canceled" if self.is_canceled else "failed"

    def release(self) -> None:
        self.waits = False
        for job in self.jobs:
            if job.state == "waiting":
                job.state = "ready"

    def cancel(self) -> None:
        if self.end is None:
            self.is_canceled = True
        self.waits = False
        for job in self.jobs:
            job.cancel()


@dataclass
class OracleWorkflow:
    nodes: dict[int, OracleNode] = field(default_factory=dict)
    is_canceled: bool = False
    #: The cancel has not reached its jobs.
    cancel_is_due: bool = False

    def add(
        self, number: int, sources: tuple[int, ...], on_failure: str, size: int | None = None
    ) -> None:
        """``size``: of a group; None: a node of one job."""
        state = "waiting" if sources else "ready"
        jobs = [OracleJob(state) for _ in range(1 if size is None else size)]
        self.nodes[number] = OracleNode(
            number, sources, on_failure, jobs, size is not None, bool(sources)
        )

    def settle(self) -> None:
        if self.cancel_is_due:
            self.cancel_is_due = False
            for node in self.nodes.values():
                node.cancel()
        # Sources have smaller numbers: one pass in their order is the fixed point.
        for number in sorted(self.nodes):
            node = self.nodes[number]
            if node.end is not None:
                node.waits = False
            elif node.waits and not self.is_canceled:
                self._judge(node)

    def _judge(self, node: OracleNode) -> None:
        ends = [self.nodes[number].end for number in node.sources]
        has_bad, is_over = any(end in BAD for end in ends), None not in ends
        if has_bad and node.on_failure == "cancel":
            node.cancel()
        elif is_over and (not has_bad or node.on_failure == "run"):
            node.release()

    @property
    def state(self) -> str:
        ends = [node.end for node in self.nodes.values()]
        if None in ends:
            return "open"
        if all(end == "succeeded" for end in ends):
            return "succeeded"
        return "canceled" if self.is_canceled else "failed"

    def cancel(self) -> bool:
        if self.is_canceled or self.state != "open":
            return False
        self.is_canceled = self.cancel_is_due = True
        return True

    def retry(self) -> int:
        """Returns how many jobs run or wait again."""
        ends = {number: node.end for number, node in self.nodes.items()}
        retried = 0
        for number, node in self.nodes.items():
            if ends[number] not in BAD:
                continue
            must_wait = any(ends[source] != "succeeded" for source in node.sources)
            again = [job for job in node.jobs if job.state in BAD and not job.is_deleted]
            for job in again:
                job.state, job.is_asked_to_stop = "waiting" if must_wait else "ready", False
            retried += len(again)
            node.waits = must_wait and bool(again or not node.jobs)
            if again or not node.jobs:
                node.is_canceled = False
        self.is_canceled = False
        return retried
