"""Decoders that many threads use at once."""

from __future__ import annotations

import subprocess
import sys

#: Threads switch as often as possible. If each used msgspec directly, one type in four would crash
#: the process.
_PROGRAM = """
import sys, threading
from datetime import datetime
import msgspec
from freehold.decoders import decoder

sys.setswitchinterval(1e-6)

def decode_in_threads():
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
    decode_in_threads()
print("all read")
"""


def test_threads_can_decode_a_new_type_at_the_same_time() -> None:
    """As the threads of a worker do when its first two child processes end together."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "all read\n"), done.stderr
