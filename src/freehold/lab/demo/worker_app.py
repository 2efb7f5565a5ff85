"""The demo's app, for `freehold worker --app freehold.lab.demo.worker_app:app`."""

from __future__ import annotations

from freehold.app import Freehold
from freehold.lab.demo.flows import define_import
from freehold.lab.demo.kinds import KINDS
from freehold.lab.demo.living import define_order
from freehold.lab.demo.tasks import define

app = Freehold()
define(app, KINDS.values())
define_order(app)
define_import(app)
