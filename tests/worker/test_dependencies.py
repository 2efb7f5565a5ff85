"""Dependencies of handlers: made for an attempt, closed after it, never stored."""

import contextvars
import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

import fastapi
import pytest
from starlette.requests import Request

from freehold import BadArguments, BadSettings, Context, Depends, Freehold, Retry, State
from freehold.testing import Harness

pytestmark = pytest.mark.requirement("N19")
#: What dependencies and handlers did, in order.
log: list[str] = []
request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="none")


@pytest.fixture(autouse=True)
def empty_log() -> None:
    log.clear()


@pytest.fixture
def app() -> Freehold:
    return Freehold("sqlite://:memory:")


def plain() -> str:
    log.append("plain")
    return "plain"


async def awaited() -> str:
    log.append("awaited")
    return "awaited"


def generator() -> Iterator[str]:
    log.append("generator opens")
    try:
        yield "generator"
    except ValueError as error:
        log.append(f"generator saw {error}")  # and does not raise it again
    finally:
        log.append("generator closes")


async def async_generator(inner: Annotated[str, Depends(generator)]) -> AsyncIterator[str]:
    log.append("async generator opens")
    try:
        yield f"async over {inner}"
    except ValueError as error:
        log.append(f"async generator saw {error}")
        raise
    finally:
        log.append("async generator closes")


class Service:
    def __init__(self, name: Annotated[str, Depends(plain)], size: int = 3) -> None:
        self.name, self.size = name, size


class Numbered:
    async def __call__(self, ctx: Context) -> str:
        return f"called in attempt {ctx.attempt}"


MADE: dict[str, tuple[Callable[..., Any], str]] = {
    "function": (plain, "plain"),
    "coroutine function": (awaited, "awaited"),
    "generator": (generator, "generator"),
    "async generator": (async_generator, "async over generator"),
    "object with __call__": (Numbered(), "called in attempt 1"),
    "partial": (functools.partial(awaited), "awaited"),
}


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("is_coroutine", [False, True])
@pytest.mark.parametrize("depends", [Depends, fastapi.Depends])
def test_a_handler_gets_the_value_of_a_dependency_of_each_kind(
    app: Freehold, kind: str, is_coroutine: bool, depends: Any
) -> None:
    function, value = MADE[kind]
    if is_coroutine:

        @app.task(name="task")
        async def task(n: int, made: Annotated[str, depends(function)]) -> str:
            return f"{n} {made}"

    else:

        @app.task(name="task")
        def task(n: int, made: Annotated[str, depends(function)]) -> str:
            return f"{n} {made}"

    with Harness(app) as queue:
        job = app.enqueue_many([task.prepare_call((7,), {})])[0]
        assert queue.run(raise_errors=True).succeeded == 1
        assert job.result() == f"7 {value}"
        assert queue.job(job.id).args == '{"n":7}'


@pytest.mark.parametrize("is_coroutine", [False, True])
def test_dependencies_end_last_one_first_and_none_hides_the_error_of_the_handler(
    app: Freehold, is_coroutine: bool
) -> None:
    """A rollback that forgets to raise must not become a success."""
    if is_coroutine:

        @app.task(name="task", retry=Retry(max_attempts=1))
        async def task(made: str = Depends(async_generator)) -> None:
            raise ValueError("the handler's")

    else:

        @app.task(name="task", retry=Retry(max_attempts=1))
        def task(made: str = Depends(async_generator)) -> None:
            raise ValueError("the handler's")

    with Harness(app) as queue:
        job = task.enqueue()
        queue.run()
        assert queue.job(job.id).state is State.FAILED
    assert log == [
        "generator opens",
        "async generator opens",
        "async generator saw the handler's",
        "async generator closes",
        "generator saw the handler's",
        "generator closes",
    ]


def test_a_generator_before_the_one_that_suppressed_the_error_still_sees_it(app: Freehold) -> None:
    def outer() -> Iterator[None]:
        try:
            yield
        except ValueError:
            log.append("outer rolls back")
            raise
        log.append("outer commits")

    def inner(before: None = Depends(outer)) -> Iterator[None]:
        try:
            yield
        except ValueError:
            log.append("inner suppresses")

    @app.task(name="task", retry=Retry(max_attempts=1))
    def task(made: None = Depends(inner)) -> None:
        raise ValueError

    with Harness(app) as queue:
        task.enqueue()
        queue.run()
    assert log == ["inner suppresses", "outer rolls back"]


def test_an_error_of_a_dependency_is_that_of_the_attempt_and_closes_the_ones_before(
    app: Freehold,
) -> None:
    def broken(before: str = Depends(generator)) -> str:
        raise ValueError("no connection")

    @app.task(name="task", retry=Retry(max_attempts=2))
    def task(made: str = Depends(broken)) -> None:
        log.append("never")

    with Harness(app) as queue:
        task.enqueue()
        report = queue.run()
    assert report.failed == 1
    once = ["generator opens", "generator saw no connection", "generator closes"]
    assert log == once * 2


def test_a_value_is_made_once_for_an_attempt_unless_it_is_not_cached(app: Freehold) -> None:
    @app.task(name="task")
    def task(
        service: Annotated[Service, Depends()],
        same: str = Depends(plain),
        fresh: str = Depends(plain, use_cache=False),
    ) -> str:
        return f"{service.name} {service.size}"

    with Harness(app) as queue:
        first, second = task.enqueue(), task.enqueue()  # type: ignore[call-arg]
        queue.run(raise_errors=True)
        assert (first.result(), second.result()) == ("plain 3", "plain 3")
    assert log == ["plain", "plain"] * 2


def test_a_context_variable_that_a_dependency_sets_is_seen_by_the_handler(app: Freehold) -> None:
    def names_request() -> None:
        request_id.set("r-7")

    @app.task(name="task")
    async def task(_named: None = Depends(names_request)) -> str:
        return request_id.get()

    with Harness(app) as queue:
        job = task.enqueue()
        queue.run()
        assert job.result() == "r-7"


def test_an_override_takes_the_place_of_a_dependency_within_its_block(app: Freehold) -> None:
    @app.task(name="task")
    def task(made: str = Depends(plain)) -> str:
        return made

    async def other(inner: str = Depends(awaited)) -> str:
        return f"other over {inner}"

    with Harness(app) as queue:
        jobs = []
        with app.override(plain, other):
            jobs.append(task.enqueue())
            queue.run(raise_errors=True)
            with app.override(plain, generator):
                jobs.append(task.enqueue())
                queue.run(raise_errors=True)
        jobs.append(task.enqueue())
        queue.run(raise_errors=True)
        assert [job.result() for job in jobs] == ["other over awaited", "generator", "plain"]
    assert app.tasks.overrides == {}


def test_a_call_cannot_give_the_value_of_a_dependency(app: Freehold) -> None:
    @app.task(name="task")
    def task(n: int, made: str = Depends(plain)) -> None: ...

    with pytest.raises(BadArguments, match="made"):
        task.prepare(1, made="mine")
    with pytest.raises(BadArguments, match="too many positional"):
        task.prepare(1, "mine")


# -- what is refused when a task is defined --------------------------------------------------


def of_request(request: Request) -> str:
    return str(request.url)


def of_optional_request(request: Request | None = None) -> None: ...


def of_header(user_agent: str = fastapi.Header()) -> None: ...


def of_a_request_within(url: str = Depends(of_request)) -> None: ...


def of_unknown(size: int) -> None: ...


def of_itself(again: Annotated[None, Depends("of_itself")]) -> None: ...


def needs_itself(again: None = None) -> None: ...


needs_itself.__defaults__ = (Depends(needs_itself),)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (
            of_request,
            r"takes `request: .*Request.*`, which belongs to a web request; a job has none",
        ),
        (of_optional_request, "belongs to a web request"),
        (of_header, "belongs to a web request"),
        (of_a_request_within, "of_a_request_within: the dependency of_request takes"),
        (of_unknown, r"takes `size: .*int.*`, which has no value in a job: mark it with Depends"),
        (of_itself, "give a function that makes the value"),
        (needs_itself, "the dependency needs_itself needs itself"),
        (3, r"Depends\(3\): give a function"),
    ],
)
def test_a_dependency_that_no_job_can_have_is_refused_with_the_reason(
    app: Freehold, function: Any, text: str
) -> None:
    def task(made: Annotated[Any, Depends(function)]) -> None: ...

    with pytest.raises(BadSettings, match=text):
        app.task(name="task")(task)
    assert app.tasks.names == []


def test_security_scopes_and_positional_parameters_beside_a_dependency_are_refused(
    app: Freehold,
) -> None:
    def scoped(made: Annotated[Any, fastapi.Security(plain, scopes=["read"])]) -> None: ...

    with pytest.raises(BadSettings, match=r"Security\(plain\) needs a request"):
        app.task(name="task")(scoped)

    def rest(made: str = Depends(plain), *others: int) -> None: ...

    with pytest.raises(BadSettings, match=r"make made keyword-only \(`\*, made`\)"):
        app.task(name="task")(rest)
