"""The nodes of a workflow that is not stored yet: calls of tasks, and what each waits for."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Generic, TypeAlias, TypeVar, Union, cast, get_args, get_origin

import msgspec

from freehold.errors import BadArguments, BadInput
from freehold.model.flow import (
    NODES_LIMIT,
    NewNode,
    OnFailure,
    check_acyclic,
    check_member,
)
from freehold.model.job import NewJob
from freehold.model.names import check_key
from freehold.tasks import Task

R = TypeVar("R")
_JSON_KINDS = {
    str: "text",
    int: "number",
    float: "number",
    bool: "boolean",
    list: "list",
    tuple: "list",
    set: "list",
    frozenset: "list",
    dict: "object",
    type(None): "null",
}


class ResultOf:
    """Stands for the result of a node in the arguments of another."""

    def __init__(self, number: int, name: str, type: Any = Any, is_secret: bool = False) -> None:
        self.number = number
        self.name = name
        self.type = type
        self.is_secret = is_secret

    def __repr__(self) -> str:
        return f"<the result of {self.name!r}>"


class Node(Generic[R]):
    """A node of a workflow: a job, or the jobs of a map."""

    def __init__(self, owner: object, number: int, name: str, result: ResultOf | None) -> None:
        self._owner = owner
        self._result = result
        self.number = number
        self.name = name

    @property
    def result(self) -> R:
        """What the node will return, as an argument of another node, which then waits for it."""
        if self._result is None:
            raise BadInput(
                f"{self.name!r} is a map, and has a result for each of its jobs: let its followers "
                "read them, with after= and flow.members()"
            )
        return cast(R, self._result)

    def __repr__(self) -> str:
        return f"<Node {self.number} {self.name!r}>"


After: TypeAlias = "Node[Any] | Iterable[Node[Any]] | None"


class NodeList:
    """Collects the nodes of one workflow, and checks each as it is added."""

    def __init__(self, on_failure: str = "cancel") -> None:
        self._default = on_failure_of(on_failure)
        self._nodes: list[NewNode] = []
        self._names: set[str] = set()
        #: The number that the last node without a name got, by the name of its task.
        self._numbers: dict[str, int] = {}

    @property
    def nodes(self) -> list[NewNode]:
        return list(self._nodes)

    def add(
        self,
        task: Task[Any, Any, Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        after: After,
        on_failure: str | None,
        name: str | None,
    ) -> Node[Any]:
        job, results = prepare_node(task, args, kwargs)
        sources = [*self._sources(after), *self._result_sources(results)]
        node = self._append(task, name, on_failure, sources, job=job)
        signature = task.definition.signature
        result = ResultOf(node.number, node.name, signature.return_type, signature.secret_result)
        return Node(self, node.number, node.name, result)

    def map(
        self,
        task: Task[Any, Any, Any],
        items: Iterable[Any],
        after: After,
        on_failure: str | None,
        name: str | None,
    ) -> Node[Any]:
        jobs = tuple(check_member(task.prepare(item), "flow.map") for item in items)
        node = self._append(task, name, on_failure, list(self._sources(after)), jobs=jobs)
        return Node(self, node.number, node.name, None)

    def _append(
        self,
        task: Task[Any, Any, Any],
        name: str | None,
        on_failure: str | None,
        sources: list[tuple[int, str]],
        job: NewJob | None = None,
        jobs: tuple[NewJob, ...] = (),
    ) -> NewNode:
        if len(self._nodes) >= NODES_LIMIT:
            raise BadInput(
                f"a workflow has at most {NODES_LIMIT:,} nodes: use flow.map, which is one node "
                "for any number of jobs"
            )
        node = NewNode(
            number=len(self._nodes) + 1,
            name=self._name(task, name),
            job=job,
            jobs=jobs,
            sources=tuple(dict.fromkeys(sources)),
            on_failure=self._default if on_failure is None else on_failure_of(on_failure),
        )
        self._nodes.append(node)
        self._names.add(node.name)
        return node

    def _name(self, task: Task[Any, Any, Any], name: str | None) -> str:
        """That of the function, with a number from the second on."""
        if name is not None:
            check_key("the name of a node", name)
            if name in self._names:
                raise BadInput(f"two nodes are called {name!r}: give each its own name")
            return name
        short = task.name.rpartition(".")[2]
        chosen = short
        while chosen in self._names:
            number = self._numbers[short] = self._numbers.get(short, 1) + 1
            chosen = f"{short}-{number}"
        return chosen

    def _sources(self, after: After) -> Iterable[tuple[int, str]]:
        given: tuple[Any, ...] = (after,) if isinstance(after, Node) else tuple(after or ())
        for node in given:
            if not isinstance(node, Node) or node._owner is not self:
                raise BadInput(
                    f"after={node!r} is no node of this workflow: give what flow.add or flow.map "
                    "has returned"
                )
            yield node.number, ""

    def _result_sources(self, results: Mapping[str, ResultOf]) -> Iterable[tuple[int, str]]:
        for parameter, result in results.items():
            if not 1 <= result.number <= len(self._nodes) or (
                self._nodes[result.number - 1].name != result.name
            ):
                raise BadInput(f"{result!r} is of no node of this workflow")
            yield result.number, parameter

    def check(self) -> None:
        """Before anything is written."""
        names = [node.name for node in self._nodes]
        edges = [
            (source - 1, node.number - 1) for node in self._nodes for source, _ in node.sources
        ]
        check_acyclic(names, edges)


def prepare_node(
    task: Task[Any, Any, Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[NewJob, dict[str, ResultOf]]:
    """The job of a node, and the results that it gets, by parameter. Raises BadInput."""
    if not isinstance(task, Task):
        raise BadInput(f"a workflow got {task!r}: give a task, and its arguments behind it")
    signature = task.definition.signature
    data, results = signature.encode_partly(args, kwargs, ResultOf)
    for parameter, result in results.items():
        _check_fits(task, parameter, result)
    job = check_member(task.prepare_encoded(data), f"flow.add({task.name})")
    if job.start_by is not None and not isinstance(job.start_by, datetime):
        raise BadInput(
            f"flow.add({task.name}): a node waits for others before it falls due: give start_by= "
            "as a time"
        )
    secret = tuple(name for name, result in results.items() if result.is_secret)
    if secret:
        marked = tuple(dict.fromkeys((*job.policy.secret_args, *secret)))
        job = msgspec.structs.replace(job, policy=replace(job.policy, secret_args=marked))
    return job, results


def _check_fits(task: Task[Any, Any, Any], parameter: str, result: ResultOf) -> None:
    """Types that can never fit are refused here; others when the node runs."""
    wanted = task.definition.signature.type_of(parameter)
    given_kinds, wanted_kinds = _kinds(result.type), _kinds(wanted)
    if given_kinds is None or wanted_kinds is None or given_kinds & wanted_kinds:
        return
    raise BadArguments(
        f"task {task.name}: argument {parameter} takes {' or '.join(sorted(wanted_kinds))}, and "
        f"the result of {result.name!r} is {' or '.join(sorted(given_kinds))}"
    )


def _kinds(hint: Any) -> set[str] | None:
    """What JSON values of a type are; None: not known."""
    if get_origin(hint) in (Union, types.UnionType):
        found = [_kinds(each) for each in get_args(hint)]
        return None if None in found else set().union(*(each for each in found if each))
    kind = _JSON_KINDS.get(get_origin(hint) or hint)
    return None if kind is None else {kind}


def on_failure_of(value: object) -> OnFailure:
    if value in [each.value for each in OnFailure]:
        return OnFailure(str(value))
    raise BadInput(f"on_failure={value!r}: choose one of {', '.join(OnFailure)}")


def jobs_of(nodes: Sequence[NewNode]) -> list[NewJob]:
    """All jobs, in the order of the nodes."""
    return [job for node in nodes for job in ((node.job,) if node.job else node.jobs)]


def with_jobs(nodes: Sequence[NewNode], jobs: Sequence[NewJob]) -> list[NewNode]:
    """The same nodes with other jobs, in the order of `jobs_of`."""
    left = iter(jobs)
    return [
        msgspec.structs.replace(node, job=next(left))
        if node.job is not None
        else msgspec.structs.replace(node, jobs=tuple(next(left) for _ in node.jobs))
        for node in nodes
    ]
