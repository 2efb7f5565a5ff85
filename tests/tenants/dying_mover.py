"""Moves the tenant acme and kills itself after a step: dying_mover URL SHARD STEP."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from freehold import Freehold
from freehold.store.postgres import schema_copy
from freehold.store.store import Store
from freehold.tenants.move import TenantMove

#: A step of its own: every table is copied, and nothing is committed.
HALF_COPIED = "half copied"


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(url: str, to: str, step: str) -> None:
    app = Freehold(url)
    if step == HALF_COPIED:
        setattr(schema_copy, "_copy_sequences", die)  # noqa: B010
    store = Store(app._database.session())
    for done in TenantMove(store, app.tenants.shards, "acme", to, timeout_seconds=30.0).steps():
        if done == step:
            die()


if __name__ == "__main__":
    main(*sys.argv[1:])
