"""The roles of deploy/postgres/roles.sql, in a database of a test."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import Connection
from psycopg.errors import InsufficientPrivilege

from freehold import Freehold, Retry

ROLES = Path(__file__).parents[2] / "deploy" / "postgres" / "roles.sql"
NAMES = ("owner", "worker", "producer", "viewer")


class Roles:
    """The roles in a fresh database, under unique names: roles belong to the whole server."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._prefix = f"t{secrets.token_hex(4)}"
        self._apps: list[Freehold] = []
        self._connections: list[Connection[Any]] = []
        self.admin = psycopg.connect(url, autocommit=True)

    def set_up(self, before_migrating: str = "") -> None:
        self.run_file()
        self.execute(before_migrating)
        for name in NAMES:
            self.admin.execute(
                f"create role {self.user(name)} login in role {self._prefix}_{name}".encode()
            )
        owner = f"alter role {self.user('owner')} set role = {self._prefix}_owner"
        self.admin.execute(owner.encode())
        self.app("owner").migrate()
        self.run_file()

    def run_file(self) -> None:
        self.execute(ROLES.read_text(encoding="utf-8"))

    def execute(self, text: str) -> None:
        """As the administrator, with the roles under their names here."""
        for name in NAMES:
            text = text.replace(f"freehold_{name}", f"{self._prefix}_{name}")
        self.admin.execute(text.encode())

    def role(self, name: str) -> str:
        return f"{self._prefix}_{name}"

    def user(self, name: str) -> str:
        return f"{self._prefix}_{name}_user"

    def url_of(self, name: str) -> str:
        assert "user=postgres" in self._url
        return self._url.replace("user=postgres", f"user={self.user(name)}")

    def app(self, name: str, schema: str = "freehold") -> Freehold:
        """An app that connects with this role."""
        app = Freehold(self.url_of(name), schema=schema)

        @app.task(name="quick")
        async def quick(a: Any = None) -> None: ...

        @app.task(name="broken", retry=Retry(max_attempts=1))
        async def broken() -> None:
            raise ValueError("it fails")

        self._apps.append(app)
        return app

    def connect(self, name: str) -> Connection[Any]:
        """A plain connection with this role, closed with the roles."""
        connection = psycopg.connect(self.url_of(name), autocommit=True)
        self._connections.append(connection)
        return connection

    def refuses(self, name: str, sql: str) -> None:
        with (
            psycopg.connect(self.url_of(name)) as connection,
            pytest.raises(InsufficientPrivilege),
        ):
            connection.execute(sql.encode())

    def close(self) -> None:
        for app in self._apps:
            app.close()
        for connection in self._connections:
            connection.close()
        with self.admin:
            for tenant in ("acme", "beta"):
                self.admin.execute(f"drop schema if exists freehold_t_{tenant} cascade".encode())
            self.admin.execute("drop schema freehold cascade")
            for name in NAMES:
                for role in (self.user(name), f"{self._prefix}_{name}"):
                    self.admin.execute(f"drop owned by {role}; drop role {role}".encode())
