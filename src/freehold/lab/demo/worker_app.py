"""What the demo's workers run: `freehold worker --app freehold.lab.demo.worker_app:app`."""

from __future__ import annotations

from freehold.app import Freehold
from freehold.lab.demo.tasks import define
from freehold.settings import load

app = Freehold()
define(app, load().kinds.values())
