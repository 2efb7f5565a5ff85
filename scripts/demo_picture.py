"""Makes docs/demo.svg from a real run of the demo: `.venv/bin/python scripts/demo_picture.py`."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI

from leasehold.cli.demo import Demo

WIDTH = 98
#: Rich would load a font from the net; the viewer's own will do.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def main() -> int:
    # Not a terminal, so that the record holds the last picture only and not every refresh.
    console = Console(record=True, force_terminal=False, color_system="truecolor", width=WIDTH)
    with tempfile.TemporaryDirectory(prefix="leasehold-demo-") as name:
        folder = Path(name)
        found = Demo(console, str(folder / "demo.db"), folder, workers=3, jobs=500).run()
    picture = Path(__file__).parents[1] / "docs" / "demo.svg"
    console.save_svg(
        str(picture), title="scripts/demo", theme=MONOKAI, code_format=FORMAT, unique_id="demo"
    )
    return 0 if found.good else 1


if __name__ == "__main__":
    sys.exit(main())
