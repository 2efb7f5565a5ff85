"""For tests of programs that use Leasehold: their jobs in memory, on virtual time.

with Harness(app) as queue:
    send.enqueue("a@example.org", subject="hi")
    queue.assert_enqueued(send, "a@example.org")
    assert queue.run().succeeded == 1
"""

from leasehold.clock import VirtualClock
from leasehold.testing.attempts import StillBusy
from leasehold.testing.harness import Harness
from leasehold.testing.inline import InlineThreads
from leasehold.testing.keeping import KeeperTask
from leasehold.testing.loop import NothingLeft, VirtualLoop
from leasehold.testing.report import HandlerError, RunReport
from leasehold.testing.worker import virtual_worker

__all__ = [
    "HandlerError",
    "Harness",
    "InlineThreads",
    "KeeperTask",
    "NothingLeft",
    "RunReport",
    "StillBusy",
    "VirtualClock",
    "VirtualLoop",
    "virtual_worker",
]
