"""What the demo's workers run: `leasehold worker --app leasehold.demo.worker_app:app`."""

from __future__ import annotations

from leasehold.app import Leasehold
from leasehold.demo.tasks import define
from leasehold.settings import load

app = Leasehold()
define(app, load().kinds.values())
