"""PgBouncer starts with the settings of its page, and Freehold works through it."""

from __future__ import annotations

import os

import pytest
from psycopg.conninfo import conninfo_to_dict

from freehold import Freehold
from tests.chaos.pooler import Pooler
from tests.conftest import POSTGRES_VARIABLE
from tests.docs.pages import ROOT, blocks

#: What the page's own words become here. The last value of a setting counts.
_HERE = """
listen_addr =
unix_socket_dir = {folder}
auth_file = {folder}/userlist.txt
"""


@pytest.mark.needs_pgbouncer
def test_the_settings_of_the_page_are_a_whole_file(postgres_store_url: str) -> None:
    (block,) = blocks("ini", ROOT / "docs" / "pgbouncer.md")
    server = conninfo_to_dict(postgres_store_url)
    place = "host={host} port={port} user=postgres dbname=" + str(server["dbname"])
    text = block.text.replace("host=db port=5432 dbname=app", place)
    assert place in text
    pooler = Pooler(os.environ[POSTGRES_VARIABLE], settings=text + _HERE)
    (pooler.folder / "userlist.txt").write_text('"app" "password"\n', "utf-8")
    pooler.start()
    app = Freehold(f"postgresql://app:password@/app?host={pooler.folder}&port=6432")

    @app.task(name="charge")
    def charge(order: int) -> int:
        return order

    try:
        job = charge.enqueue(7)
        app.run_worker(until_idle=True)
        assert job.result() == 7
    finally:
        app.close()
        pooler.close()
