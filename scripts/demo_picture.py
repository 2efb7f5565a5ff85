"""Makes docs/demo.svg from a real run of the demo: `.venv/bin/python scripts/demo_picture.py`."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI

from freehold.cli.demo import Demo
from freehold.lab.demo.view import ScreenView
from freehold.settings import load

WIDTH = 98
MAX_WORKERS = 6
#: Rich would load a font from the net; the viewer's own will do.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


class Snapshot(ScreenView):
    """Of all pictures the one in which the killed worker's jobs have all just come back."""

    taken = False

    def _draw(self, story_lines: int | None = None) -> None:
        scene = self._scene
        if self.taken or scene is None or not scene.missing:
            return
        if all(job.is_back for job in scene.missing):
            self.taken = True
            self._console.print(self.picture())


def main() -> int:
    # Not a terminal, so that the record holds what is printed here and nothing besides.
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
        stage = Snapshot(console, MAX_WORKERS)
        url = str(folder / "demo.db")
        found = Demo(console, stage, url, folder, settings, 400, MAX_WORKERS).run()
    picture = Path(__file__).parents[1] / "docs" / "demo.svg"
    console.save_svg(
        str(picture), title="scripts/demo", theme=MONOKAI, code_format=FORMAT, unique_id="demo"
    )
    return 0 if found is not None and found.good else 1


if __name__ == "__main__":
    sys.exit(main())
