"""The public names of Python, with signatures and docstrings."""

from __future__ import annotations

import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import freehold
from freehold.errors import FreeholdError
from freehold.model.handler_exceptions import HandlerException
from freehold.store.statements import AsyncMethods, method
from freehold.worker.execution.flows import BatchContext, WorkflowContext
from scripts.site.markdown import code, first_sentence, page, prose, table

#: Names of the module `freehold`, by topic. Exceptions and unlisted names have sections of their own.
TOPICS = {
    "App and tasks": ("Freehold", "Task", "TaskGroup", "JobHandle", "Depends", "Extension"),
    "Options": (
        [
            "Retry",
            "Limit",
            "Rate",
            "Unique",
            "Debounce",
            "Throttle",
            "Secret",
            "Cron",
            "Every",
            "WorkerSettings",
        ]
    ),
    "Batches and workflows": ("Batch", "Workflow", "Node"),
    "Handlers": ("Context", "Tick", "Lease", "EndedAttempt"),
    "Operators": ("Operator", "AsyncOperator", "Tenants"),
}
#: What `Context` returns. The classes have no public names: handlers make none of them.
OF_THE_CONTEXT = {"ctx.batch": BatchContext, "ctx.workflow": WorkflowContext}
#: Other public modules.
MODULES = (
    "freehold.testing",
    "freehold.http",
    "freehold.dashboard",
    "freehold.logs",
    "freehold.contrib.fastapi",
    "freehold.contrib.litestar",
    "freehold.contrib.otel",
    "freehold.contrib.sentry",
)
_MODULE_PREFIX = re.compile(r"\b(?:[a-z_]+\.)+(?=[A-Za-z_])")
_SIGNATURE_WIDTH = 92
#: Parameters that callers do not give: of methods, and of the verbs of an operator.
_HIDDEN = ("self", "cls", "via", "check")


def python_page() -> str:
    parts = []
    for title, names in {**TOPICS, **_other_names()}.items():
        parts.append(f"## {title}\n")
        parts += [describe(name, getattr(freehold, name)) for name in names]
        if "Context" in names:
            parts += [f"### {name}\n\n{_members_table(k)}" for name, k in OF_THE_CONTEXT.items()]
    for name in MODULES:
        parts += _module(name)
    return page(
        "Python",
        "The public names. What is not listed here, or begins with `_`, may change in any release: see "
        "[versions](../versions.md).",
        *parts,
    )


def _other_names() -> dict[str, list[str]]:
    listed = {name for names in TOPICS.values() for name in names}
    rest = [name for name in freehold.__all__ if name not in listed]
    raised = [name for name in rest if _is(name, HandlerException)]
    errors = [name for name in rest if _is(name, FreeholdError)]
    values = [name for name in rest if name not in {*raised, *errors}]
    return {"Exceptions that handlers raise": raised, "Values": values}


def _is(name: str, base: type) -> bool:
    found = getattr(freehold, name)
    return inspect.isclass(found) and issubclass(found, base)


def _module(name: str) -> Iterator[str]:
    module = importlib.import_module(name)
    yield f"## {name}\n"
    yield first_sentence(module.__doc__) + "\n"
    for each in public_names(module):
        yield describe(each, getattr(module, each), f"{name}.")


def public_names(module: Any) -> list[str]:
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]


def describe(name: str, value: Any, prefix: str = "") -> str:
    text = f"### {prefix}{name}\n\n"
    if inspect.isclass(value):
        return text + _class(name, value)
    if inspect.isroutine(value):
        return text + code(signature(name, value), "py") + "\n" + prose(value.__doc__) + "\n"
    return text + prose(type(value).__doc__) + "\n"


def _class(name: str, kind: type) -> str:
    document = "" if kind.__doc__ == _inherited_doc(kind) else prose(kind.__doc__)
    parts = [document + "\n"] if document else []
    if issubclass(kind, enum.Enum):
        return "\n".join([*parts, "Values: " + ", ".join(f"`{m.value}`" for m in kind) + ".\n"])
    parts.insert(0, code(signature(name, kind), "py"))
    parts.append(_members_table(kind))
    return "\n".join(filter(None, parts))


def _members_table(kind: type) -> str:
    rows = [[f"`{each}`", first_sentence(doc)] for each, doc in _members(kind)]
    return table(["member", "meaning"], rows) if rows else ""


def _inherited_doc(kind: type) -> str | None:
    return kind.__mro__[1].__doc__


def _members(kind: type) -> Iterator[tuple[str, str]]:
    """Public members with a docstring, those of bases in this package included. The twin for
    asyncio of a method follows it."""
    members = {n: v for n, v in inspect.getmembers_static(kind) if not n.startswith("_")}

    def is_twin(name: str) -> bool:
        return name.startswith("a") and name[1:] in members

    for name in sorted(members, key=lambda n: (n[1:], 1) if is_twin(n) else (n, 0)):
        value = members[name]
        function = _function(kind, name, value)
        document = getattr(function, "__doc__", None)
        if document is None and is_twin(name):
            document = f"`{name[1:]}` for asyncio."
        if document and "freehold" in (getattr(function, "__module__", None) or ""):
            yield signature(name, function, one_line=True), document
        elif document and isinstance(value, property):
            yield name, document


def _function(kind: type, name: str, value: Any) -> Any:
    """What a member calls. A verb of the store is listed in its class as a `method`."""
    if isinstance(value, method):
        return None if issubclass(kind, AsyncMethods) else value._verb
    if isinstance(value, classmethod | staticmethod) or inspect.isfunction(value):
        return getattr(kind, name)
    return value if isinstance(value, property) else None


def signature(name: str, value: Any, *, one_line: bool = False) -> str:
    """As a call is written: without self, without the modules of types."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    hidden = _HIDDEN if one_line else _HIDDEN[:2]
    parameters = [p for p in found.parameters.values() if p.name not in hidden]
    short = [_parameter(p, with_type=not one_line) for p in parameters]
    kinds = [p.kind for p in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        short.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    line = f"{name}({', '.join(short)})"
    if one_line or len(line) <= _SIGNATURE_WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {each},\n" for each in short) + ")"


def _parameter(parameter: inspect.Parameter, *, with_type: bool) -> str:
    stars: dict[Any, str] = {
        inspect.Parameter.VAR_POSITIONAL: "*",
        inspect.Parameter.VAR_KEYWORD: "**",
    }
    text = stars.get(parameter.kind, "") + parameter.name
    typed = with_type and parameter.annotation is not inspect.Parameter.empty
    if typed:
        text += f": {_type(parameter.annotation)}"
    if parameter.default is not inspect.Parameter.empty:
        text += (" = " if typed else "=") + _default(parameter.default)
    return text


def _type(annotation: Any) -> str:
    text = str(annotation)
    if not isinstance(annotation, str):
        text = inspect.formatannotation(annotation)
    return _MODULE_PREFIX.sub("", text).replace("'", "")


def _default(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return repr(value.value)
    text = repr(value)
    return "…" if text.startswith("<") or len(text) > 40 else text
