"""Verbs as methods: written down once, blocking in one class and a coroutine in another."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from freehold.store.statements import AsyncSession, Session, Verb, arun, run

P = ParamSpec("P")
T = TypeVar("T")


class BlockingMethods:
    """Runs verbs on a blocking session."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def run(self, steps: Verb[T]) -> T:
        return run(steps, self.session)

    def _as_method(self, verb: Callable[P, Verb[T]]) -> Callable[P, T]:
        session = self.session

        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return run(verb(*args, **kwargs), session)

        return call


class AsyncMethods:
    """Runs verbs on a session of asyncio."""

    def __init__(self, session: AsyncSession) -> None:
        self.session = session

    async def run(self, steps: Verb[T]) -> T:
        return await arun(steps, self.session)

    def _as_method(self, verb: Callable[P, Verb[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        session = self.session

        async def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return await arun(verb(*args, **kwargs), session)

        return call


class method(Generic[P, T]):  # noqa: N801 - used like `property`
    """One verb in the list of a class that inherits one of the above."""

    def __init__(self, verb: Callable[P, Verb[T]]) -> None:
        self._verb = verb

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: BlockingMethods, owner: type) -> Callable[P, T]: ...

    @overload
    def __get__(
        self, instance: AsyncMethods, owner: type
    ) -> Callable[P, Coroutine[Any, Any, T]]: ...

    @overload
    def __get__(
        self, instance: None, owner: type[BlockingMethods]
    ) -> Callable[Concatenate[Any, P], T]: ...

    @overload
    def __get__(
        self, instance: None, owner: type[AsyncMethods]
    ) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]: ...

    def __get__(self, instance: Any, owner: type) -> Any:
        """Made at the first use and kept in the instance, where Python looks first afterwards."""
        if instance is None:
            return self._of_class
        made = instance.__dict__[self._name] = instance._as_method(self._verb)
        return made

    def _of_class(self, instance: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(instance, self._name)(*args, **kwargs)
