"""Shared fixtures: one PostgreSQL server per run, and a database for each test that needs one."""

from __future__ import annotations

import gc
import os
import sqlite3
import zlib
from collections.abc import Generator, Iterator

import psycopg
import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import engine

from freehold.lab.devpostgres import DevPostgres, DevPostgresError
from tests.browser.chromium import missing_browser
from tests.chaos.pooler import missing_pooler
from tests.database_pool import DatabasePool
from tests.processor_time import ProcessorTime, ProcessorTimeReport
from tests.progress import Progress
from tests.promela.spin import missing_tools
from tests.requirements_table import STORES, requirements_of, stores_of
from tests.sizes import LONG_VARIABLE, is_long
from tests.stores import PostgresUnderTest, SqliteUnderTest, StoreUnderTest, fresh_database

# The URL of a server to use instead of a new one; it must name a database.
POSTGRES_VARIABLE = "FREEHOLD_TEST_POSTGRES"
SERVER = pytest.StashKey[DevPostgres]()
SERVER_SETTINGS: dict[str, str | int] = {
    # The data is deleted after the run. Tests of durability start their own servers.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": 300,
}

#: The files that take or wait longest start first, so that the run does not end with a single one.
LONGEST = (
    "tests/store_postgres/test_plans.py",
    "tests/simulation/test_planted_bugs.py",
    "tests/worker/test_stuck_handlers.py",
    "tests/demo/test_run.py",
    "tests/chaos/test_short.py",
    "tests/promela/test_lease_model.py",
    "tests/manager/test_chaos.py",
    "tests/simulation/test_seeds.py",
    "tests/tenants/test_host_processes.py",
    "tests/bench/test_quick.py",
    "tests/worker/test_timeouts.py",
    "tests/manager/test_replaced_workers.py",
    "tests/store_postgres/test_migrations.py",
    "tests/worker/test_drain.py",
    "tests/tenants/test_move.py",
    "tests/tenants/test_move_between_servers.py",
    "tests/http/test_openapi.py",
    "tests/manager/test_manager_killed.py",
    "tests/manager/test_scaling.py",
    "tests/worker/test_poison_jobs.py",
    "tests/worker/test_killed_worker.py",
    "tests/store_contract/test_state_machine.py",
    "tests/test_devpostgres.py",
)

# The default and long profiles give the same result everywhere; `--hypothesis-profile=explore`
# tries other examples in each run.
settings.register_profile("default", deadline=None, print_blob=True, derandomize=True)
settings.register_profile(
    "long", deadline=None, print_blob=True, derandomize=True, max_examples=1500
)
settings.register_profile("explore", deadline=None, print_blob=True, max_examples=2000)
#: A failing test must print its example before its time is over; by default Hypothesis shrinks it
#: for five minutes, which is that time.
engine.MAX_SHRINKING_SECONDS = 60


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long", action="store_true", help="the long form: large sizes, which take hours, and Spin"
    )
    parser.addoption("--progress", action="store_true", help="lines of progress instead of dots")
    parser.addoption("--cpu", action="store_true", help="show the processor time of each file")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.long:
        os.environ[LONG_VARIABLE] = "1"
    if config.getoption("--hypothesis-profile", None) is None:
        settings.load_profile("long" if is_long() else "default")
    if config.option.cpu and _is_worker(config):
        config.pluginmanager.register(ProcessorTime())
    if _is_worker(config) or config.option.collectonly:
        return
    if config.option.long and _is_whole(config) and (missing := missing_tools()):
        pytest.exit(f"the long form needs the model: {missing}", returncode=1)
    _start_postgres(config)
    if config.option.cpu:
        _report_processor_time(config)


def pytest_sessionstart(session: pytest.Session) -> None:
    config = session.config
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if config.option.progress and reporter is not None and not _is_worker(config):
        config.pluginmanager.register(Progress(reporter))


def _is_worker(config: pytest.Config) -> bool:
    """Whether this is a process of xdist."""
    return hasattr(config, "workerinput")


def _is_whole(config: pytest.Config) -> bool:
    """Whether all tests run, and not only some files."""
    return config.args_source is not pytest.Config.ArgsSource.ARGS


def _start_postgres(config: pytest.Config) -> None:
    """One server for all xdist workers: they start later and inherit the environment."""
    if POSTGRES_VARIABLE in os.environ:
        return
    server = config.stash[SERVER] = DevPostgres(settings=SERVER_SETTINGS)
    try:
        server.start()
    except DevPostgresError as error:
        pytest.exit(f"the tests need PostgreSQL: {error}", returncode=pytest.ExitCode.USAGE_ERROR)
    os.environ[POSTGRES_VARIABLE] = server.url


def _report_processor_time(config: pytest.Config) -> None:
    server = config.stash.get(SERVER, None)
    pid = None if server is None else int((server.data / "postmaster.pid").read_text().split()[0])
    has_workers = bool(config.getoption("numprocesses", None))
    config.pluginmanager.register(ProcessorTimeReport(pid if has_workers else None))
    if not has_workers:
        config.pluginmanager.register(ProcessorTime(pid))


def pytest_unconfigure(config: pytest.Config) -> None:
    server = config.stash.get(SERVER, None)
    if server is not None:
        os.environ.pop(POSTGRES_VARIABLE, None)
        server.close()


def pytest_report_header(config: pytest.Config) -> list[str]:
    if config.option.collectonly:
        return []
    own = SERVER in config.stash
    return [
        f"form: {'long' if is_long() else 'short (--long for the long one)'}",
        f"stores: SQLite {sqlite3.sqlite_version}; PostgreSQL {_server_version()}, "
        + ("a server of this run" if own else f"the server of {POSTGRES_VARIABLE}"),
        f"pages in a browser: {missing_browser() or 'run by Chromium'}",
        f"model of the lease protocol: {missing_tools() or 'run by Spin'}",
    ]


def _server_version() -> str:
    with psycopg.connect(os.environ[POSTGRES_VARIABLE]) as connection:
        return connection.info.parameter_status("server_version") or "unknown"


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """A test that did not run is named at the end, where the result is read."""
    if _is_whole(config) or any("django" in each for each in config.args):
        terminalreporter.write_line(
            "NOT RUN: tests/django/upstream.py, and tests/django with other versions of Python and "
            "Django: scripts/pythons",
            yellow=True,
        )
    if _is_whole(config) and (missing := missing_browser()):
        terminalreporter.write_line(f"NOT RUN: tests/browser: {missing}", yellow=True)
    if _is_whole(config) and not is_long() and (missing := missing_pooler()):
        terminalreporter.write_line(f"NOT RUN: steps through PgBouncer: {missing}", yellow=True)
    is_selected = _is_whole(config) or any("promela" in each for each in config.args)
    if is_selected and not is_long() and (missing := missing_tools()):
        terminalreporter.write_line(f"NOT RUN: tests/promela with Spin: {missing}", yellow=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    places = {file: place for place, file in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))
    if is_long():
        return
    named = {item for item in items if item.nodeid in config.args}.__contains__
    left_out = {"long_form"} | ({"needs_spin"} if missing_tools() else set())
    if missing_pooler():
        left_out.add("needs_pgbouncer")
    if missing_browser() and _is_whole(config):
        left_out.add("needs_browser")
    without = [
        item
        for item in items
        if any(map(item.get_closest_marker, left_out))
        or ((_is_on_the_other_store(item) or _is_left_out_on_cursors(item)) and not named(item))
    ]
    config.hook.pytest_deselected(items=without)
    chosen = set(items).difference(without)
    items[:] = [item for item in items if item in chosen]


def _is_on_the_other_store(item: pytest.Item) -> bool:
    """Of the tests on either store about a half runs on each, always the same ones."""
    if item.get_closest_marker("either_store") is None:
        return False
    function = item.nodeid.partition("[")[0]
    return STORES[zlib.crc32(function.encode()) % 2] not in stores_of(item)


def _is_left_out_on_cursors(item: pytest.Item) -> bool:
    """psycopg's cursors send the same statements as our pipeline: of the contract's tests a third
    runs on them too, always the same ones."""
    function, _, parameters = item.nodeid.partition("[")
    return "postgres_on_cursors" in parameters and zlib.crc32(function.encode()) % 3 > 0


def pytest_collection_finish() -> None:
    """What was collected lives as long as the process. Every collection of garbage would go through
    those million objects again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem() -> Generator[None, object, object]:
    """Refuses unknown requirements here, where pytest reports the error with its file."""
    made = yield
    for item in made if isinstance(made, list) else []:
        if isinstance(item, pytest.Item):
            requirements_of(item)
    return made


@pytest.fixture(scope="session", autouse=True)
def _private_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test uses the private folder of the user that runs it."""
    os.environ["XDG_RUNTIME_DIR"] = str(tmp_path_factory.mktemp("runtime"))


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """A fresh, empty database."""
    with fresh_database(os.environ[POSTGRES_VARIABLE]) as url:
        yield url


@pytest.fixture(scope="session")
def database_pool() -> Iterator[DatabasePool]:
    database_pool = DatabasePool(os.environ[POSTGRES_VARIABLE])
    yield database_pool
    database_pool.close()


@pytest.fixture
def postgres_store_url(database_pool: DatabasePool) -> Iterator[str]:
    """A database with an empty store in it."""
    with database_pool.borrow() as url:
        yield url


@pytest.fixture(scope="session")
def postgres_under_test() -> Iterator[PostgresUnderTest]:
    """One migrated database for all tests of this process; `store` empties it for each."""
    with fresh_database(os.environ[POSTGRES_VARIABLE]) as url:
        under_test = PostgresUnderTest(url)
        yield under_test
        under_test.close()


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[StoreUnderTest]:
    """Both stores, empty, on a clock that stands still."""
    if request.param == "sqlite":
        sqlite = SqliteUnderTest()
        yield sqlite
        sqlite.database.close()
    else:
        postgres: PostgresUnderTest = request.getfixturevalue("postgres_under_test")
        postgres.reset()
        yield postgres
