"""For tests of programs that use Freehold: jobs in memory, on virtual time.

with Harness(app) as queue:
    send.enqueue("a@example.org", subject="hi")
    queue.assert_enqueued(send, "a@example.org")
    assert queue.run().succeeded == 1
"""

from freehold.clock import VirtualClock
from freehold.testing.attempts import StillBusy
from freehold.testing.harness import Harness
from freehold.testing.inline import InlineThreads
from freehold.testing.inline_renewal import RenewalTask
from freehold.testing.report import HandlerError, RunReport
from freehold.testing.virtual_loop import NothingLeft, VirtualLoop
from freehold.testing.worker import virtual_worker

__all__ = [
    "HandlerError",
    "Harness",
    "InlineThreads",
    "NothingLeft",
    "RenewalTask",
    "RunReport",
    "StillBusy",
    "VirtualClock",
    "VirtualLoop",
    "virtual_worker",
]
