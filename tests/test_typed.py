"""Types that many threads meet at once."""

from __future__ import annotations

import subprocess
import sys

#: Threads change hands as often as they can. Where each asks msgspec itself, one type in four
#: crashes the process.
_MEETING = """
import sys, threading
from datetime import datetime
import msgspec
from freehold.decoders import decoder

sys.setswitchinterval(1e-6)

def meet():
    fields = [("a", int, 0), ("b", list[str], []), ("c", datetime | None, None)]
    inner = msgspec.defstruct("Inner", fields)
    first = msgspec.defstruct("First", [("inner", inner), ("more", dict[str, inner], {})], tag=True)
    second = msgspec.defstruct("Second", [("inner", inner), ("x", float, 0.0)], tag=True)
    data = msgspec.json.encode(first(inner(a=7)))
    found, together = [], threading.Barrier(4)
    def read():
        together.wait()
        found.append(decoder(first | second).decode(data).inner.a)
    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [7] * 4, found

for _ in range(60):
    meet()
print("all read")
"""


def test_threads_that_meet_a_type_at_once_all_read_it() -> None:
    """A worker's threads did so when its first two child processes ended together."""
    met = subprocess.run([sys.executable, "-c", _MEETING], capture_output=True, text=True)
    assert (met.returncode, met.stdout) == (0, "all read\n"), met.stderr
