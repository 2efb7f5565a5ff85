"""Makes docs/demo.svg from a real run of the demo: `.venv/bin/python scripts/demo_picture.py`."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI

from freehold.lab.commands.demo import Demo
from freehold.lab.demo.view import ScreenView
from freehold.settings import load

WIDTH = 98
MAX_WORKERS = 6
#: Without rich's web font: the viewer's own is used.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


class Snapshot(ScreenView):
    """Prints the screen once, when all jobs of the killed worker have just been recovered."""

    taken = False

    def _draw(self, line_count: int | None = None) -> None:
        snapshot = self._snapshot
        if self.taken or snapshot is None or not snapshot.orphans:
            return
        if all(job.is_recovered for job in snapshot.orphans):
            self.taken = True
            self._console.print(self.picture())


def main() -> int:
    # Not a terminal, so that the recording contains only the text printed here.
    console = Console(
        record=True,
        force_terminal=False,
        color_system="truecolor",
        width=WIDTH,
        height=50,
        highlight=False,
    )
    with tempfile.TemporaryDirectory(prefix="freehold-demo-") as name:
        folder = Path(name)
        settings = load(environment={}, folder=folder)
        view = Snapshot(console, MAX_WORKERS)
        url = str(folder / "demo.db")
        found = Demo(console, view, url, folder, settings, 400, MAX_WORKERS).run()
    picture = Path(__file__).parents[1] / "docs" / "demo.svg"
    console.save_svg(
        str(picture), title="scripts/demo", theme=MONOKAI, code_format=FORMAT, unique_id="demo"
    )
    return 0 if found is not None and found.good else 1


if __name__ == "__main__":
    sys.exit(main())
