"""What all tests share: one PostgreSQL for the run, a database for each test that asks."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings

from leasehold.devpostgres import DevPostgres, DevPostgresError
from tests.lending import Lending
from tests.requirements_table import requirements_of
from tests.stores import PostgresUnderTest, SqliteUnderTest, StoreUnderTest, fresh_database

# The address of a server to use instead of our own; it must name a database.
POSTGRES_VARIABLE = "LEASEHOLD_TEST_POSTGRES"
SERVER = pytest.StashKey[DevPostgres]()
SERVER_SETTINGS: dict[str, str | int] = {
    # The data lives as long as the run. Tests of durability start servers of their own.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": 300,
}

#: One that began last would be waited for alone: they begin first.
LONGEST = (
    "tests/simulation/test_seeds.py",
    "tests/manager/test_chaos.py",
    "tests/store_contract/test_state_machine.py",
    "tests/demo/test_run.py",
    "tests/tenants/test_move_under_fire.py",
    "tests/manager/test_manager_killed.py",
    "tests/manager/test_waves.py",
    "tests/manager/test_replacing.py",
    "tests/hosts/test_host_processes.py",
    "tests/store_sqlite/test_processes.py",
)

# The same command gives the same answer everywhere; `--hypothesis-profile=long` explores.
settings.register_profile("default", deadline=None, print_blob=True, derandomize=True)
settings.register_profile("long", deadline=None, print_blob=True, max_examples=2000)
settings.load_profile("default")


def pytest_configure(config: pytest.Config) -> None:
    """One server for all xdist workers: they start later and inherit the environment."""
    is_worker = hasattr(config, "workerinput")
    if is_worker or config.option.collectonly or POSTGRES_VARIABLE in os.environ:
        return
    server = config.stash[SERVER] = DevPostgres(settings=SERVER_SETTINGS)
    try:
        server.start()
    except DevPostgresError as error:
        pytest.exit(f"the tests need PostgreSQL: {error}", returncode=pytest.ExitCode.USAGE_ERROR)
    os.environ[POSTGRES_VARIABLE] = server.url


def pytest_unconfigure(config: pytest.Config) -> None:
    server = config.stash.get(SERVER, None)
    if server is not None:
        os.environ.pop(POSTGRES_VARIABLE, None)
        server.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: LONGEST.index(f) if (f := item.location[0]) in LONGEST else 99)


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem() -> Generator[None, object, object]:
    """Refuses unknown requirements here, where pytest still reports an error as one of a file."""
    made = yield
    for item in made if isinstance(made, list) else []:
        if isinstance(item, pytest.Item):
            requirements_of(item)
    return made


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """A fresh, empty database."""
    with fresh_database(os.environ[POSTGRES_VARIABLE]) as url:
        yield url


@pytest.fixture(scope="session")
def lending() -> Iterator[Lending]:
    lending = Lending(os.environ[POSTGRES_VARIABLE])
    yield lending
    lending.close()


@pytest.fixture
def postgres_store_url(lending: Lending) -> Iterator[str]:
    """A database with an empty store in it."""
    with lending.lent() as url:
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
