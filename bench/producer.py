"""One of many enqueuing clients:  python -m bench.producer URL WAKES SECONDS

Prints `ready` and starts when a line arrives on its standard input, at the same time as the others.
"""

from __future__ import annotations

import json
import sys
import time

from bench.contenders.freehold import TASK
from freehold import Freehold
from freehold.store.notifications import NotifyLimiter


def main() -> None:
    url, wakes, seconds = sys.argv[1], sys.argv[2] == "1", float(sys.argv[3])
    app = Freehold(url)
    if not wakes:
        NotifyLimiter.with_job = NotifyLimiter.after_jobs = lambda *_: False  # type: ignore[method-assign, assignment]

    @app.task(name=TASK)
    def job(sent: float) -> None: ...

    job.enqueue(0.0)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    jobs, began = 0, time.time()
    while time.time() - began < seconds:
        job.enqueue(0.0)
        jobs += 1
    rate = jobs / (time.time() - began)
    sys.stdout.write(json.dumps({"jobs": jobs, "rate": rate}) + "\n")


if __name__ == "__main__":
    main()
