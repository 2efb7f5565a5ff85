"""Graphile Worker on Node.js; its processes run `graphile.mjs`, with the same roles."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from bench.contender import Contender


class Graphile(Contender):
    name = "graphile"
    terms = "concurrentJobs=24; deletes finished jobs"
    package = "graphile-worker"
    unfinished = "select count(*) from graphile_worker._private_jobs"

    @classmethod
    def version(cls, node: Path | None) -> str | None:
        """Read from the folder given by --node, where npm installed the package."""
        manifest = (node or Path()) / "node_modules" / cls.package / "package.json"
        if shutil.which("node") is None or node is None or not manifest.exists():
            return None
        return str(json.loads(manifest.read_text())["version"])

    @classmethod
    def command(cls, node: Path | None) -> list[str]:
        return ["node", str(Path(__file__).with_suffix(".mjs")), str(node)]


class GraphileTuned(Graphile):
    name = "graphile-tuned"
    terms = "a local queue of 500, completions in batches; deletes finished jobs"
