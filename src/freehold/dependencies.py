"""Dependencies of handlers: parameters that are made for an attempt, and are no part of the call.

    def session() -> Iterator[Session]:
        with Session(engine) as opened:
            yield opened

    @app.task
    def bill(order: int, db: Annotated[Session, Depends(session)]) -> None: ...

FastAPI's `Depends` is recognized by its shape, so that its functions serve requests and jobs. A
dependency is a function, a coroutine function, or a generator of either kind, whose rest runs when
the attempt has ended. It may have dependencies itself, and a parameter ``ctx``.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, get_args, get_origin, get_type_hints

from freehold.errors import BadSettings

CONTEXT_PARAMETER = "ctx"
#: Their objects belong to a request, which a job does not have.
_WEB_FRAMEWORKS = frozenset({"fastapi", "litestar", "starlette"})
Overrides: TypeAlias = Mapping[Callable[..., Any], Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class _Mark:
    """What `Depends` returns. FastAPI's has the same attributes."""

    dependency: Callable[..., Any] | None
    use_cache: bool


def Depends(  # noqa: N802 - the name that users of FastAPI know
    dependency: Callable[..., Any] | None = None, *, use_cache: bool = True
) -> Any:
    """Mark a parameter: ``Annotated[T, Depends(make)]``, or ``= Depends(make)``, with which type
    checkers know that calls leave it out. Without a function the type itself is called. A value is
    used for all parameters of an attempt that need it, unless ``use_cache`` is False."""
    return _Mark(dependency, use_cache)


@dataclass(frozen=True, slots=True)
class Dependency:
    """A function whose value an attempt needs, and what it needs itself."""

    function: Callable[..., Any]
    is_cached: bool
    wants_context: bool
    needs: tuple[tuple[str, Dependency], ...]

    @property
    def waits(self) -> bool:
        called = _called(self.function)
        return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)


class Dependencies:
    """The dependencies of one handler, by parameter."""

    def __init__(self, by_name: Mapping[str, Dependency]) -> None:
        self._by_name = by_name

    def around(
        self, call: Callable[..., Any], ctx: Any, overrides: Overrides, *, is_coroutine: bool
    ) -> Callable[[], Any]:
        """The call of a handler with the values of its dependencies. They end after it, the last
        one first, and get its exception, which no dependency can suppress."""

        async def awaited() -> Any:
            values = _Values(ctx, overrides)
            try:
                ended = await call(**await values.of(self._by_name))
            except BaseException as error:
                await values.end(error)
                raise
            await values.end(None)
            return ended

        def called() -> Any:
            with self._runner(overrides) as run:
                values = _Values(ctx, overrides)
                try:
                    ended = call(**run(values.of(self._by_name)))
                except BaseException as error:
                    run(values.end(error))
                    raise
                run(values.end(None))
                return ended

        return awaited if is_coroutine else called

    @contextmanager
    def _runner(self, overrides: Overrides) -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
        """Most plain handlers have plain dependencies only, and need no event loop for them."""
        if not any(_waits(each, overrides) for each in self._by_name.values()):
            yield _run_at_once
            return
        with asyncio.Runner() as runner:
            yield runner.run


class _Values:
    """The values of one attempt."""

    def __init__(self, ctx: Any, overrides: Overrides) -> None:
        self._ctx = ctx
        self._overrides = overrides
        self._made: dict[Callable[..., Any], Any] = {}
        self._stack = AsyncExitStack()

    async def of(self, needs: Mapping[str, Dependency]) -> dict[str, Any]:
        return {name: await self._one(each) for name, each in needs.items()}

    async def _one(self, asked: Dependency) -> Any:
        if asked.is_cached and asked.function in self._made:
            return self._made[asked.function]
        dependency = _overridden(asked, self._overrides)
        arguments = await self.of(dict(dependency.needs))
        if dependency.wants_context:
            arguments[CONTEXT_PARAMETER] = self._ctx
        value = await self._call(dependency.function, arguments)
        if asked.is_cached:
            self._made[asked.function] = value
        return value

    async def _call(self, function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        called = _called(function)
        if inspect.isgeneratorfunction(called):
            plain = contextmanager(function)(**arguments)
            value = plain.__enter__()
            self._stack.push(_unsuppressed(plain))
            return value
        if inspect.isasyncgenfunction(called):
            context = asynccontextmanager(function)(**arguments)
            value = await context.__aenter__()
            self._stack.push_async_exit(_aunsuppressed(context))
            return value
        value = function(**arguments)
        return await value if inspect.iscoroutinefunction(called) else value

    async def end(self, error: BaseException | None) -> None:
        trace = None if error is None else error.__traceback__
        await self._stack.__aexit__(None if error is None else type(error), error, trace)


def _unsuppressed(context: AbstractContextManager[Any]) -> Callable[..., None]:
    """A generator that catches the error of the handler, as for a rollback, must neither turn it
    into a success nor hide it from the dependencies around it."""

    def end(*error: Any) -> None:
        context.__exit__(*error)

    return end


def _aunsuppressed(
    context: AbstractAsyncContextManager[Any],
) -> Callable[..., Coroutine[Any, Any, None]]:
    async def end(*error: Any) -> None:
        await context.__aexit__(*error)

    return end


def _run_at_once(work: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine that does not wait."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    work.close()
    raise RuntimeError("a plain dependency waits for an event loop: make it a coroutine function")


def _waits(dependency: Dependency, overrides: Overrides) -> bool:
    dependency = _overridden(dependency, overrides)
    return dependency.waits or any(_waits(each, overrides) for _, each in dependency.needs)


def _overridden(dependency: Dependency, overrides: Overrides) -> Dependency:
    other = overrides.get(dependency.function)
    if other is None:
        return dependency
    return _dependency(f"the override of {_name(dependency.function)}", _Mark(other, True), None)


# -- what is read from signatures ------------------------------------------------------------


def dependencies_of(
    task: str, function: Callable[..., Any], hints: Mapping[str, Any]
) -> Dependencies | None:
    """The dependencies of a handler; None if it has none. Raises BadSettings."""
    found: dict[str, Dependency] = {}
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name)
        if (mark := _mark_of(parameter, hint)) is not None:
            found[parameter.name] = _dependency(f"task {task}", mark, hint)
    return Dependencies(found) if found else None


def is_dependency(parameter: inspect.Parameter) -> bool:
    """``parameter`` has its type as its annotation, not the text of it."""
    return _mark_of(parameter, parameter.annotation) is not None


def _mark_of(parameter: inspect.Parameter, hint: Any) -> Any:
    extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    for each in (parameter.default, *reversed(extras)):
        if isinstance(each, _Mark) or _has_shape_of_fastapi(each):
            return each
    return None


def _has_shape_of_fastapi(value: Any) -> bool:
    named = any(kind.__name__ == "Depends" for kind in type(value).__mro__)
    return named and hasattr(value, "dependency") and hasattr(value, "use_cache")


def _dependency(
    owner: str, mark: Any, hint: Any, within: tuple[Callable[..., Any], ...] = ()
) -> Dependency:
    """``within``: the functions that need this one."""
    function = mark.dependency
    if function is None:
        function = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if not callable(function):
        raise BadSettings(f"{owner}: Depends({function!r}): give a function that makes the value")
    if getattr(mark, "scopes", None):
        raise BadSettings(f"{owner}: Security({_name(function)}) needs a request; a job has none")
    if function in within:
        raise BadSettings(f"{owner}: the dependency {_name(function)} needs itself")
    needs: dict[str, Dependency] = {}
    wants_context = False
    hints = _hints(owner, function)
    for parameter in _parameters(owner, function):
        own_hint = hints.get(parameter.name)
        if parameter.name == CONTEXT_PARAMETER:
            wants_context = True
        elif (inner := _mark_of(parameter, own_hint)) is not None:
            path = (*within, function)
            needs[parameter.name] = _dependency(
                f"{owner}, {_name(function)}", inner, own_hint, path
            )
        else:
            _check_left_out(owner, function, parameter, own_hint)
    return Dependency(function, bool(mark.use_cache), wants_context, tuple(needs.items()))


def _check_left_out(
    owner: str, function: Callable[..., Any], parameter: inspect.Parameter, hint: Any
) -> None:
    """Only a parameter with a default can be left out, and one of a request has no value here."""
    which = f"{owner}: the dependency {_name(function)} takes `{parameter}`"
    if any(_is_of_request(each) for each in (hint, parameter.default)):
        raise BadSettings(
            f"{which}, which belongs to a web request; a job has none: pass what the job needs as "
            "an argument of the task, or write a dependency without it"
        )
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    if parameter.default is inspect.Parameter.empty and parameter.kind not in variable:
        raise BadSettings(
            f"{which}, which has no value in a job: mark it with Depends, give it a default, or "
            "call it ctx to get the context"
        )


def _is_of_request(value: Any) -> bool:
    """Of a type, an optional type, or a default as `Query()` of FastAPI."""
    if get_origin(value) is not None:
        return any(_is_of_request(each) for each in get_args(value))
    kind = value if isinstance(value, type) else type(value)
    return kind.__module__.partition(".")[0] in _WEB_FRAMEWORKS


def _parameters(owner: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except ValueError:  # some types of C code have no signature
        raise BadSettings(
            f"{owner}: the parameters of {_name(function)} are not known: wrap it in a function"
        ) from None


def _hints(owner: str, function: Callable[..., Any]) -> dict[str, Any]:
    target: Any = getattr(function, "func", function)  # of a partial
    if isinstance(target, type):
        target = vars(target).get("__init__", target)
    elif not inspect.isroutine(target):
        target = type(target).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except NameError as error:
        raise BadSettings(
            f"{owner}: {error}; the types of the parameters of {_name(function)} must be "
            "importable where it is defined"
        ) from None


def _called(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that runs when an object with `__call__` is called."""
    if inspect.isroutine(function) or isinstance(function, type) or hasattr(function, "func"):
        return function
    called: Callable[..., Any] = type(function).__call__
    return called


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))
