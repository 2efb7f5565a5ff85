"""Worker processes of the demo."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path


class Fleet:
    """Starts, kills and replaces workers. The store's URL travels by the environment."""

    def __init__(self, url: str, folder: Path, lease_seconds: float) -> None:
        self._environment = {**os.environ, "LEASEHOLD_URL": url}
        self._folder = folder
        self._lease_seconds = lease_seconds
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        log = (self._folder / f"worker-{len(self.workers) + 1}.log").open("wb")
        command = [sys.executable, "-m", "leasehold", "worker", "--concurrency", "6",
                   "--lease-seconds", str(self._lease_seconds), "--grace-seconds", "5"]  # fmt: skip
        with log:
            worker = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
        self.workers.append(worker)
        return worker

    def kill(self, pid: int) -> None:
        """As the kernel would: no time for a last word."""
        for worker in self.workers:
            if worker.pid == pid:
                worker.send_signal(signal.SIGKILL)
                worker.wait()

    @property
    def alive(self) -> list[int]:
        return [worker.pid for worker in self.workers if worker.poll() is None]

    def stop(self) -> None:
        """By drain; whoever does not end is ended."""
        for worker in self.workers:
            if worker.poll() is None:
                worker.terminate()
        for worker in self.workers:
            try:
                worker.wait(timeout=20)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
